import { Button, Group, Modal, NativeSelect, NumberInput, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";

import { api } from "../../api/client";
import type { Topic } from "../../api/contract";
import { ErrorState } from "../../components/ErrorState";
import { notifySuccess } from "../../components/notify";
import { ConfigFields } from "./ConfigFields";
import { toCreateTopic, CLEANUP_POLICIES, EMPTY_TOPIC, nameError, RETENTIONS, type TopicForm } from "./topicForm";

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
  const change = (changes: Partial<TopicForm>) => setForm((before) => ({ ...before, ...changes }));
  const create = useMutation({
    mutationFn: () => api.post<Topic>("/topics", toCreateTopic(form)),
    onSuccess: async ({ name }) => {
      notifySuccess(`Topic ${name} created.`);
      onClose();
      await queryClient.invalidateQueries({ queryKey: ["topics"] });
      await navigate(`/topics/${encodeURIComponent(name)}`);
    },
  });

  function submit(event: FormEvent) {
    event.preventDefault();
    if (form.name && !nameError(form.name)) create.mutate();
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
          error={nameError(form.name)}
          onChange={(event) => change({ name: event.currentTarget.value })}
        />
        <NumberInput
          label="Partitions"
          description="Leave empty for the cluster default. The number can be increased later, but not decreased"
          min={1}
          max={100_000}
          allowDecimal={false}
          value={form.partitionCount}
          onChange={(value) => change({ partitionCount: value })}
        />
        <Group grow align="flex-start">
          <NativeSelect label="Cleanup policy" data={CLEANUP_POLICIES} value={form.cleanupPolicy} onChange={(event) => change({ cleanupPolicy: event.currentTarget.value })} />
          <NativeSelect label="Retention time" data={RETENTIONS} value={form.retention} onChange={(event) => change({ retention: event.currentTarget.value })} />
        </Group>
        <ConfigFields configs={form.configs} onChange={(configs) => change({ configs })} />
        {create.error && <ErrorState error={create.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending} disabled={!form.name || nameError(form.name) !== null}>
            Create
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
