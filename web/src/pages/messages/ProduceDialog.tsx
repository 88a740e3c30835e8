/** Writes one record; it stays open with what was typed if the cluster refuses. */

import { Group, NativeSelect, Stack, Switch, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { api, at } from "../../api/client";
import type { Produced } from "../../api/contract";
import { FormDialog } from "../../components/FormDialog";
import { notifyDone } from "../../components/notify";
import { HeaderFields } from "./HeaderFields";
import { EMPTY_RECORD, type NewRecord, type Part, problemsOf, toProduce, WRITE_FORMATS, type WriteFormat } from "./newRecord";
import { SchemaFields } from "./SchemaFields";

interface Props {
  topic: string;
  partitionCount: number;
  isOpen: boolean;
  onClose: () => void;
  onProduced: (produced: Produced) => void;
}

export function ProduceDialog({ topic, partitionCount, isOpen, onClose, onProduced }: Props) {
  const [record, setRecord] = useState<NewRecord>(EMPTY_RECORD);
  const [wasTried, setWasTried] = useState(false);
  const change = (changes: Partial<NewRecord>) => setRecord((before) => ({ ...before, ...changes }));
  const problems = wasTried ? problemsOf(record) : {};
  const writing = useMutation({
    mutationFn: () => api.post<Produced>(at`/topics/${topic}/messages`, toProduce(record)),
    onSuccess: (produced) => {
      notifyDone(`The record is at offset ${produced.offset} of partition ${produced.partition}.`);
      setRecord(EMPTY_RECORD);
      setWasTried(false);
      onProduced(produced);
      onClose();
    },
  });

  function submit() {
    setWasTried(true);
    if (Object.keys(problemsOf(record)).length === 0) writing.mutate();
  }

  return (
    <FormDialog
      title={`Write a record to ${topic}`}
      action="Write record"
      size="lg"
      opened={isOpen}
      isBusy={writing.isPending}
      error={writing.error}
      onClose={onClose}
      onSubmit={submit}
    >
      <NativeSelect
        label="Partition"
        data={[{ value: "", label: "by the key, or any" }, ...Array.from({ length: partitionCount }, (_, number) => String(number))]}
        value={record.partition === null ? "" : String(record.partition)}
        onChange={(event) => {
          const chosen = event.currentTarget.value;
          change({ partition: chosen === "" ? null : Number(chosen) });
        }}
      />
      <PartFields of="key" part={record.key} error={problems.key} onChange={(key) => change({ key })} />
      <Switch
        label="Tombstone: no value, which deletes the key of a compacted topic"
        checked={record.isTombstone}
        onChange={(event) => change({ isTombstone: event.currentTarget.checked })}
      />
      {!record.isTombstone && (
        <PartFields of="value" part={record.value} error={problems.value} onChange={(value) => change({ value })} />
      )}
      <HeaderFields headers={record.headers} onChange={(headers) => change({ headers })} />
    </FormDialog>
  );
}

interface PartProps {
  of: "key" | "value";
  part: Part;
  error: string | undefined;
  onChange: (part: Part) => void;
}

function PartFields({ of, part, error, onChange }: PartProps) {
  const name = of === "key" ? "Key" : "Value";
  return (
    <Stack gap="xs">
      <Group align="flex-start" gap="sm">
        <Textarea
          label={name}
          placeholder={of === "key" ? "None" : undefined}
          rows={of === "key" ? 1 : 6}
          resize="vertical"
          flex={1}
          miw={220}
          error={error}
          value={part.text}
          onChange={(event) => onChange({ ...part, text: event.currentTarget.value })}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
        <NativeSelect
          label={`${name} is written as`}
          data={[...WRITE_FORMATS]}
          value={part.format}
          onChange={(event) => onChange({ ...part, format: event.currentTarget.value as WriteFormat })}
        />
      </Group>
      <SchemaFields of={of} format={part.format} schema={part.schema} onChange={(schema) => onChange({ ...part, schema })} />
    </Stack>
  );
}
