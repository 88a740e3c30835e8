/** Actions on a topic: flush, add partitions, delete. */

import { Button, NumberInput, Text } from "@mantine/core";
import { IconPlus, IconStackPush, IconTrash } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";

import { api, at } from "../../api/client";
import type { Flushed, TopicDetail } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { FormDialog } from "../../components/FormDialog";
import { notifySuccess } from "../../components/notify";
import { plural } from "../../lib/format";

/** A flush waits until every owner has written its segments. */
const FLUSH_TIMEOUT_MS = 120_000;

type Action = "flush" | "add" | "delete";

export function TopicActions({ detail: { topic } }: { detail: TopicDetail }) {
  const { name } = topic;
  const [action, setAction] = useState<Action | null>(null);
  const client = useQueryClient();
  const navigate = useNavigate();
  const close = () => setAction(null);

  async function flush() {
    const flushed = await api.post<Flushed>(at`/topics/${name}/flush`, {}, { timeoutMs: FLUSH_TIMEOUT_MS });
    notifySuccess(`${plural(flushed.partitions.length, "partition")} of ${name} flushed to segments.`);
    await client.invalidateQueries({ queryKey: ["topic", name] });
  }

  async function deleteTopic(confirm: string) {
    await api.delete(at`/topics/${name}`, { confirm });
    notifySuccess(`Topic ${name} deleted.`);
    await navigate("/topics");
    client.removeQueries({ queryKey: ["topic", name], type: "inactive" });
    await client.invalidateQueries({ queryKey: ["topics"] });
  }

  return (
    <>
      <Button variant="default" leftSection={<IconStackPush size={16} aria-hidden />} onClick={() => setAction("flush")}>
        Flush
      </Button>
      <Button variant="default" leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setAction("add")}>
        Add partitions
      </Button>
      <Button variant="outline" color="var(--ks-bad)" leftSection={<IconTrash size={16} aria-hidden />} onClick={() => setAction("delete")}>
        Delete
      </Button>
      <ConfirmDialog opened={action === "flush"} onClose={close} title={`Flush ${name}`} action="Flush" onConfirm={flush}>
        All records that are only in the WAL are written to segments, for readers of segments such as Spark. Producers and consumers are not
        blocked. Each flush costs some object store requests.
      </ConfirmDialog>
      <AddPartitionsDialog name={name} currentCount={topic.partitionCount} opened={action === "add"} onClose={close} />
      <ConfirmDialog opened={action === "delete"} onClose={close} title={`Delete ${name}`} action="Delete topic" typed={name} danger onConfirm={deleteTopic}>
        The topic and all of its records are deleted. This cannot be undone.
      </ConfirmDialog>
    </>
  );
}

interface AddPartitionsProps {
  name: string;
  currentCount: number;
  opened: boolean;
  onClose: () => void;
}

function AddPartitionsDialog({ name, currentCount, opened, onClose }: AddPartitionsProps) {
  const [requestedCount, setRequestedCount] = useState<number | null>(null);
  const client = useQueryClient();
  const partitionCount = requestedCount ?? currentCount + 1;
  const adding = useMutation({
    mutationFn: () => api.post<TopicDetail>(at`/topics/${name}/partitions`, { partitionCount }),
    onSuccess: async (detail) => {
      client.setQueryData(["topic", name], detail);
      notifySuccess(`Topic ${name} now has ${plural(detail.topic.partitionCount, "partition")}.`);
      close();
      await client.invalidateQueries({ queryKey: ["topics"] });
    },
  });

  function close() {
    setRequestedCount(null);
    adding.reset();
    onClose();
  }

  return (
    <FormDialog
      title={`Add partitions to ${name}`}
      action="Add partitions"
      opened={opened}
      isBusy={adding.isPending}
      isReady={partitionCount > currentCount}
      error={adding.error}
      onClose={close}
      onSubmit={() => adding.mutate()}
    >
      <Text size="sm">
        The topic has {plural(currentCount, "partition")}. Partitions cannot be removed later. New records of a key may go to another partition than its
        existing records.
      </Text>
      <NumberInput
        label="Total partitions"
        data-autofocus
        min={currentCount + 1}
        allowDecimal={false}
        value={partitionCount}
        onChange={(value) => setRequestedCount(Number(value))}
      />
    </FormDialog>
  );
}
