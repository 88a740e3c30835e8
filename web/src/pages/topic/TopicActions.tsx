/** What can be done to a topic as a whole. */

import { Button, NumberInput, Text } from "@mantine/core";
import { IconPlus, IconStackPush, IconTrash } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";

import { api, at } from "../../api/client";
import type { Flushed, TopicDetail } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { FormDialog } from "../../components/FormDialog";
import { notifyDone } from "../../components/notify";
import { plural } from "../../lib/format";

/** A flush waits for every owner to write its segments. */
const FLUSH_LIMIT_MS = 120_000;

type Action = "flush" | "grow" | "delete";

export function TopicActions({ detail: { topic } }: { detail: TopicDetail }) {
  const { name } = topic;
  const [action, setAction] = useState<Action | null>(null);
  const client = useQueryClient();
  const navigate = useNavigate();
  const close = () => setAction(null);

  async function flush() {
    const flushed = await api.post<Flushed>(at`/topics/${name}/flush`, {}, { timeLimitMs: FLUSH_LIMIT_MS });
    notifyDone(`${plural(flushed.partitions.length, "partition")} of ${name} flushed into segments.`);
    await client.invalidateQueries({ queryKey: ["topic", name] });
  }

  async function remove(confirm: string) {
    await api.delete(at`/topics/${name}`, { confirm });
    notifyDone(`Topic ${name} is deleted.`);
    await navigate("/topics");
    client.removeQueries({ queryKey: ["topic", name], type: "inactive" });
    await client.invalidateQueries({ queryKey: ["topics"] });
  }

  return (
    <>
      <Button variant="default" leftSection={<IconStackPush size={16} aria-hidden />} onClick={() => setAction("flush")}>
        Flush
      </Button>
      <Button variant="default" leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setAction("grow")}>
        Add partitions
      </Button>
      <Button variant="outline" color="var(--ks-bad)" leftSection={<IconTrash size={16} aria-hidden />} onClick={() => setAction("delete")}>
        Delete
      </Button>
      <ConfirmDialog opened={action === "flush"} onClose={close} title={`Flush ${name}`} action="Flush" onConfirm={flush}>
        All records that are in the WAL only are written into segments, for readers of segments such as Spark. Nobody has to wait for it;
        each flush costs some requests to the object store.
      </ConfirmDialog>
      <GrowDialog name={name} now={topic.partitionCount} opened={action === "grow"} onClose={close} />
      <ConfirmDialog opened={action === "delete"} onClose={close} title={`Delete ${name}`} action="Delete topic" typed={name} danger onConfirm={remove}>
        The topic and all of its records are deleted, for all readers. This cannot be undone.
      </ConfirmDialog>
    </>
  );
}

interface GrowProps {
  name: string;
  now: number;
  opened: boolean;
  onClose: () => void;
}

function GrowDialog({ name, now, opened, onClose }: GrowProps) {
  const [wanted, setWanted] = useState<number | null>(null);
  const client = useQueryClient();
  const partitionCount = wanted ?? now + 1;
  const growing = useMutation({
    mutationFn: () => api.post<TopicDetail>(at`/topics/${name}/partitions`, { partitionCount }),
    onSuccess: async (detail) => {
      client.setQueryData(["topic", name], detail);
      notifyDone(`${name} has ${plural(detail.topic.partitionCount, "partition")} now.`);
      close();
      await client.invalidateQueries({ queryKey: ["topics"] });
    },
  });

  function close() {
    setWanted(null);
    growing.reset();
    onClose();
  }

  return (
    <FormDialog
      title={`Add partitions to ${name}`}
      action="Add partitions"
      opened={opened}
      isBusy={growing.isPending}
      isReady={partitionCount > now}
      error={growing.error}
      onClose={close}
      onSubmit={() => growing.mutate()}
    >
      <Text size="sm">
        There {now === 1 ? "is" : "are"} {plural(now, "partition")} now, and there is no way back to fewer. New records of a key may go to another
        partition than its old ones.
      </Text>
      <NumberInput
        label="Partitions in all"
        data-autofocus
        min={now + 1}
        allowDecimal={false}
        value={partitionCount}
        onChange={(value) => setWanted(Number(value))}
      />
    </FormDialog>
  );
}
