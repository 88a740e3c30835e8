/** Produces one record. On an error the dialog stays open and keeps the input. */

import { Group, NativeSelect, Stack, Switch, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { api, at } from "../../api/client";
import type { Produced } from "../../api/contract";
import { FormDialog } from "../../components/FormDialog";
import { notifySuccess } from "../../components/notify";
import { HeaderFields } from "./HeaderFields";
import { EMPTY_RECORD, type NewRecord, type Part, validationErrors, toProduce, PRODUCE_FORMATS, type ProduceFormat } from "./newRecord";
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
  const [isSubmitted, setSubmitted] = useState(false);
  const change = (changes: Partial<NewRecord>) => setRecord((before) => ({ ...before, ...changes }));
  const errors = isSubmitted ? validationErrors(record) : {};
  const producing = useMutation({
    mutationFn: () => api.post<Produced>(at`/topics/${topic}/messages`, toProduce(record)),
    onSuccess: (produced) => {
      notifySuccess(`Record produced at offset ${produced.offset} of partition ${produced.partition}.`);
      setRecord(EMPTY_RECORD);
      setSubmitted(false);
      onProduced(produced);
      onClose();
    },
  });

  function submit() {
    setSubmitted(true);
    if (Object.keys(validationErrors(record)).length === 0) producing.mutate();
  }

  return (
    <FormDialog
      title={`Produce a record to ${topic}`}
      action="Produce"
      size="lg"
      opened={isOpen}
      isBusy={producing.isPending}
      error={producing.error}
      onClose={onClose}
      onSubmit={submit}
    >
      <NativeSelect
        label="Partition"
        data={[{ value: "", label: "automatic (by key)" }, ...Array.from({ length: partitionCount }, (_, number) => String(number))]}
        value={record.partition === null ? "" : String(record.partition)}
        onChange={(event) => {
          const chosen = event.currentTarget.value;
          change({ partition: chosen === "" ? null : Number(chosen) });
        }}
      />
      <PartFields of="key" part={record.key} error={errors.key} onChange={(key) => change({ key })} />
      <Switch
        label="Tombstone: a null value, which deletes the key in a compacted topic"
        checked={record.isTombstone}
        onChange={(event) => change({ isTombstone: event.currentTarget.checked })}
      />
      {!record.isTombstone && (
        <PartFields of="value" part={record.value} error={errors.value} onChange={(value) => change({ value })} />
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
          label={`${name} format`}
          data={[...PRODUCE_FORMATS]}
          value={part.format}
          onChange={(event) => onChange({ ...part, format: event.currentTarget.value as ProduceFormat })}
        />
      </Group>
      <SchemaFields of={of} format={part.format} schema={part.schema} onChange={(schema) => onChange({ ...part, schema })} />
    </Stack>
  );
}
