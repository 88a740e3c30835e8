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

const TIME_LIMIT_MS = 120_000;

export function FlushDialog({ broker, opened, onClose }: Props) {
  return (
    <ActionDialog<Flushed>
      opened={opened}
      onClose={onClose}
      title={`Flush broker ${broker}`}
      verb="Flush"
      act={() => api.post(at`/brokers/${broker}/flush`, undefined, { timeLimitMs: TIME_LIMIT_MS })}
      result={({ partitions }) =>
        partitions.length > 0 ? <PartitionNames label="Rolled into segments" partitions={partitions} /> : <Text size="sm">There was nothing to flush: everything is in segments already.</Text>
      }
    >
      <Text size="sm">What of its partitions is only in the write-ahead log becomes segments now, rather than when there is enough of it. Nothing is lost without it: the log is in the object store, too.</Text>
    </ActionDialog>
  );
}
