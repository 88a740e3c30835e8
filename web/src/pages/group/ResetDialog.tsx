/**
 * Resets the committed offsets of a group: first a preview, then the change.
 *
 * Invariant: a change of the form discards the plan, so that only a previewed plan can be executed.
 */

import { Button, Group, Modal, MultiSelect, NativeSelect, ScrollArea, Stack, Table, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";

import { api, at } from "../../api/client";
import type { ResetPlan, ResetRow } from "../../api/contract";
import { ErrorState } from "../../components/ErrorState";
import { Note } from "../../components/Note";
import { notifySuccess } from "../../components/notify";
import { count, plural } from "../../lib/format";
import { EMPTY_FORM, validationError, RESET_KINDS, type ResetForm, type ResetKind, toReset } from "./resetForm";

interface Props {
  group: string;
  topics: string[];
  hasMembers: boolean;
  isOpen: boolean;
  onClose: () => void;
  onReset: () => void;
}

export function ResetDialog({ group, topics, hasMembers, isOpen, onClose, onReset }: Props) {
  const [form, setForm] = useState<ResetForm>(EMPTY_FORM);
  const planning = useMutation({
    mutationFn: () => api.post<ResetPlan>(at`/groups/${group}/reset`, toReset(form, false)),
  });
  const executing = useMutation({
    mutationFn: () => api.post<ResetPlan>(at`/groups/${group}/reset`, toReset(form, true)),
    onSuccess: (plan) => {
      notifySuccess(`Offsets of ${group} reset in ${plural(plan.rows.length, "partition")}.`);
      close();
      onReset();
    },
  });
  const problem = validationError(form);
  const plan = planning.data;
  const failure = executing.error ?? planning.error;

  function change(changes: Partial<ResetForm>) {
    setForm((before) => ({ ...before, ...changes }));
    planning.reset();
    executing.reset();
  }

  function close() {
    planning.reset();
    executing.reset();
    onClose();
  }

  function preview(event: FormEvent) {
    event.preventDefault();
    if (!problem) planning.mutate();
  }

  return (
    <Modal opened={isOpen} onClose={close} title={`Reset offsets of ${group}`} size="lg" closeButtonProps={{ "aria-label": "Close" }}>
      <form onSubmit={preview} noValidate>
        <Stack>
          {hasMembers && (
            <Note tone="warning">The group has active members. Stop its consumers first: offsets can be reset only while the group is empty.</Note>
          )}
          <ResetFields form={form} topics={topics} problem={problem} onChange={change} />
          {failure && <ErrorState error={failure} />}
          {plan && <PlanTable rows={plan.rows} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" variant={plan ? "default" : "filled"} loading={planning.isPending} disabled={problem !== null}>
              Preview
            </Button>
            {plan && plan.rows.length > 0 && (
              <Button color="red.8" loading={executing.isPending} onClick={() => executing.mutate()}>
                Reset {plural(plan.rows.length, "partition")}
              </Button>
            )}
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

interface FieldsProps {
  form: ResetForm;
  topics: string[];
  problem: string | null;
  onChange: (changes: Partial<ResetForm>) => void;
}

function ResetFields({ form, topics, problem, onChange }: FieldsProps) {
  return (
    <>
      <MultiSelect
        label="Topics"
        placeholder={form.topics.length === 0 ? "All topics with committed offsets" : undefined}
        data={topics}
        value={form.topics}
        onChange={(chosen) => onChange({ topics: chosen })}
        searchable
        clearable
        clearButtonProps={{ "aria-label": "All topics" }}
      />
      <NativeSelect
        label="Reset to"
        data={[...RESET_KINDS]}
        value={form.kind}
        onChange={(event) => onChange({ kind: event.currentTarget.value as ResetKind })}
      />
      {form.kind === "offset" && (
        <TextInput label="Offset" inputMode="numeric" value={form.offset} error={problem} onChange={(event) => onChange({ offset: event.currentTarget.value })} />
      )}
      {form.kind === "shift" && (
        <TextInput
          label="Records"
          description="A negative number moves back."
          value={form.shift}
          error={problem}
          onChange={(event) => onChange({ shift: event.currentTarget.value })}
        />
      )}
      {form.kind === "time" && (
        <TextInput
          label="Time (local)"
          type="datetime-local"
          step={1}
          value={form.time}
          error={form.time === "" ? null : problem}
          onChange={(event) => onChange({ time: event.currentTarget.value })}
        />
      )}
    </>
  );
}

function PlanTable({ rows }: { rows: ResetRow[] }) {
  if (rows.length === 0) return <Note tone="info">Nothing to reset: the group has no committed offsets here.</Note>;
  return (
    <Stack gap="xs">
      <Text size="sm" fw={600} role="status">
        This resets {plural(rows.length, "partition")}. Nothing has been changed yet.
      </Text>
      <ScrollArea.Autosize mah={320} type="auto" viewportProps={{ tabIndex: 0, role: "region", "aria-label": "Plan" }}>
        <Table aria-label="Plan" stickyHeader>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Topic</Table.Th>
              <Table.Th ta="right">Partition</Table.Th>
              <Table.Th ta="right">Current offset</Table.Th>
              <Table.Th ta="right">New offset</Table.Th>
              <Table.Th ta="right">New lag</Table.Th>
              <Table.Th>Note</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={`${row.topic}/${row.partition}`}>
                <Table.Td>{row.topic}</Table.Td>
                <Table.Td ta="right">{row.partition}</Table.Td>
                <Table.Td ta="right">{count(row.before)}</Table.Td>
                <Table.Td ta="right">{count(row.after)}</Table.Td>
                <Table.Td ta="right">{count(row.endOffset - row.after)}</Table.Td>
                <Table.Td>{row.note}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollArea.Autosize>
    </Stack>
  );
}
