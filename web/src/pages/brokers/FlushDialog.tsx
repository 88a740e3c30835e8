import { Text } from "@mantine/core";

import { api, at } from "../../api/client";
import type { Flushed } from "../../api/contract";
import { ActionDialog } from "./ActionDialog";
import { PartitionNames } from "./PartitionNames";

interface Props {
  broker: number;
  opened: boolean;
  onClose: () => void;
}

const TIMEOUT_MS = 120_000;

export function FlushDialog({ broker, opened, onClose }: Props) {
  return (
    <ActionDialog<Flushed>
      opened={opened}
      onClose={onClose}
      title={`Flush broker ${broker}`}
      action="Flush"
      run={() => api.post(at`/brokers/${broker}/flush`, undefined, { timeoutMs: TIMEOUT_MS })}
      result={({ partitions }) =>
        partitions.length > 0 ? <PartitionNames label="Rolled into segments" partitions={partitions} /> : <Text size="sm">Nothing to flush: all records are in segments.</Text>
      }
    >
      <Text size="sm">Records that are only in the WAL are written to segments now, before the usual size or time limit. Durability does not depend on it: the WAL is in the object store as well.</Text>
    </ActionDialog>
  );
}
