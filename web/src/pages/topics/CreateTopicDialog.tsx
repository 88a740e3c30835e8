import { Button, Group, Modal, NativeSelect, NumberInput, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";

import { api } from "../../api/client";
import type { Topic } from "../../api/contract";
import { ErrorState } from "../../components/ErrorState";
import { notifyDone } from "../../components/notify";
import { ConfigFields } from "./ConfigFields";
import { asCreateTopic, CLEANUP_POLICIES, EMPTY_TOPIC, nameProblem, RETENTIONS, type TopicForm } from "./topicForm";

export function CreateTopicDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title="Create a topic" size="lg" closeButtonProps={{ "aria-label": "Close" }}>
      <Form onClose={onClose} />
    </Modal>
  );
}

function Form({ onClose }: { onClose: () => void }) {
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const [form, setForm] = useState<TopicForm>(EMPTY_TOPIC);
  const change = (some: Partial<TopicForm>) => setForm((before) => ({ ...before, ...some }));
  const create = useMutation({
    mutationFn: () => api.post<Topic>("/topics", asCreateTopic(form)),
    onSuccess: async ({ name }) => {
      notifyDone(`The topic ${name} was created.`);
      onClose();
      await queryClient.invalidateQueries({ queryKey: ["topics"] });
      await navigate(`/topics/${encodeURIComponent(name)}`);
    },
  });

  function submit(event: FormEvent) {
    event.preventDefault();
    if (form.name && !nameProblem(form.name)) create.mutate();
  }

  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label="Name"
          description="Letters, digits, dots, underscores and dashes"
          required
          data-autofocus
          autoComplete="off"
          spellCheck={false}
          value={form.name}
          error={nameProblem(form.name)}
          onChange={(event) => change({ name: event.currentTarget.value })}
        />
        <NumberInput
          label="Partitions"
          description="Empty: as many as the cluster's settings say. There can be more later, never fewer"
          min={1}
          max={100_000}
          allowDecimal={false}
          value={form.partitionCount}
          onChange={(value) => change({ partitionCount: value })}
        />
        <Group grow align="flex-start">
          <NativeSelect label="Cleanup" data={CLEANUP_POLICIES} value={form.cleanupPolicy} onChange={(event) => change({ cleanupPolicy: event.currentTarget.value })} />
          <NativeSelect label="Records are kept" data={RETENTIONS} value={form.retention} onChange={(event) => change({ retention: event.currentTarget.value })} />
        </Group>
        <ConfigFields configs={form.configs} onChange={(configs) => change({ configs })} />
        {create.error && <ErrorState error={create.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending} disabled={!form.name || nameProblem(form.name) !== null}>
            Create
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
