import { NumberInput, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { api, at } from "../../api/client";
import type { Drain, Drained } from "../../api/contract";
import { ActionDialog } from "./ActionDialog";
import { PartitionNames } from "./PartitionNames";

interface Props {
  broker: number;
  opened: boolean;
  onClose: () => void;
}

/** Beyond the deadline that the broker was given: what it needs to answer. */
const SPARE_MS = 30_000;

export function DrainDialog({ broker, opened, onClose }: Props) {
  const [reason, setReason] = useState("");
  const [deadline, setDeadline] = useState<string | number>(60);
  const seconds = Number(deadline) || 60;

  function drain(): Promise<Drained> {
    const asked: Drain = { deadlineSeconds: seconds, ...(reason.trim() && { reason: reason.trim() }) };
    return api.post(at`/brokers/${broker}/drain`, asked, { timeLimitMs: seconds * 1000 + SPARE_MS });
  }

  return (
    <ActionDialog<Drained> opened={opened} onClose={onClose} title={`Drain broker ${broker}`} verb="Drain" danger act={drain} result={(drained) => <Result {...drained} />}>
      <Text size="sm">
        The broker hands all of its partitions to the others and takes no new ones until it is started again. Do this before it is stopped for good or updated; with no other broker there, its partitions have nowhere to go.
      </Text>
      <TextInput label="Reason" description="For the log of the broker" placeholder="requested in the console" value={reason} onChange={(event) => setReason(event.currentTarget.value)} maxLength={200} />
      <NumberInput label="Deadline in seconds" description="How long to wait for it; the broker goes on with what is left" min={1} max={600} value={deadline} onChange={setDeadline} />
    </ActionDialog>
  );
}

function Result({ broker, drained, pending }: Drained) {
  return (
    <Stack gap="xs">
      <Text size="sm">
        {pending.length > 0
          ? `Broker ${broker} did not hand over everything in time, and goes on with the rest. Look at its page again in a moment.`
          : `Broker ${broker} serves nothing any more: it can be stopped.`}
      </Text>
      <PartitionNames label="Handed over" partitions={drained} />
      <PartitionNames label="Still there" partitions={pending} />
    </Stack>
  );
}
