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

/** Time for the response after the drain deadline. */
const RESPONSE_MARGIN_MS = 30_000;

export function DrainDialog({ broker, opened, onClose }: Props) {
  const [reason, setReason] = useState("");
  const [deadline, setDeadline] = useState<string | number>(60);
  const seconds = Number(deadline) || 60;

  function drain(): Promise<Drained> {
    const request: Drain = { deadlineSeconds: seconds, ...(reason.trim() && { reason: reason.trim() }) };
    return api.post(at`/brokers/${broker}/drain`, request, { timeoutMs: seconds * 1000 + RESPONSE_MARGIN_MS });
  }

  return (
    <ActionDialog<Drained> opened={opened} onClose={onClose} title={`Drain broker ${broker}`} action="Drain" danger run={drain} result={(drained) => <Result {...drained} />}>
      <Text size="sm">
        The broker transfers all of its partitions to other brokers and gets no new ones until it restarts. Drain a broker before you stop or upgrade it. At least one other broker must be running.
      </Text>
      <TextInput label="Reason" description="Written to the broker's log" placeholder="requested in the console" value={reason} onChange={(event) => setReason(event.currentTarget.value)} maxLength={200} />
      <NumberInput label="Deadline in seconds" description="Time to wait for the drain; the broker continues after it" min={1} max={600} value={deadline} onChange={setDeadline} />
    </ActionDialog>
  );
}

function Result({ broker, drained, pending }: Drained) {
  return (
    <Stack gap="xs">
      <Text size="sm">
        {pending.length > 0
          ? `Broker ${broker} did not transfer all partitions within the deadline, and continues with the rest. Check its page again in a moment.`
          : `Broker ${broker} owns no partitions any more and can be stopped.`}
      </Text>
      <PartitionNames label="Transferred" partitions={drained} />
      <PartitionNames label="Pending" partitions={pending} />
    </Stack>
  );
}
