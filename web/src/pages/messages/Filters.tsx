/** The search form above the records. Changes apply on submit. */

import { Button, Collapse, Group, MultiSelect, NativeSelect, Paper, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconAdjustments, IconSearch } from "@tabler/icons-react";
import { type FormEvent, useEffect, useState } from "react";

import type { Format, Isolation } from "../../api/contract";
import { DEFAULT_QUERY, FORMATS, ISOLATIONS, LIMITS, type MessageQuery } from "./query";
import { SchemaFields } from "./SchemaFields";
import { StartFields } from "./StartFields";
import type { Schemas } from "./savedSchemas";

interface Props {
  query: MessageQuery;
  schemas: Schemas;
  partitionCount: number;
  isBusy: boolean;
  onSubmit: (query: MessageQuery, schemas: Schemas) => void;
}

export function Filters({ query, schemas, partitionCount, isBusy, onSubmit }: Props) {
  const [draft, setDraft] = useState(query);
  const [draftSchemas, setDraftSchemas] = useState(schemas);
  const [isOpen, { toggle }] = useDisclosure(usesMoreFields(query));
  useEffect(() => setDraft(query), [query]);
  useEffect(() => setDraftSchemas(schemas), [schemas]);
  const change = (changes: Partial<MessageQuery>) => setDraft((before) => ({ ...before, ...changes }));

  function submit(event: FormEvent) {
    event.preventDefault();
    onSubmit(draft, draftSchemas);
  }

  function clear() {
    setDraft(DEFAULT_QUERY);
    onSubmit(DEFAULT_QUERY, draftSchemas);
  }

  return (
    <Paper component="form" withBorder p="md" onSubmit={submit} aria-label="Find records" role="search">
      <Stack gap="sm">
        <Group align="flex-end" gap="sm">
          <StartFields query={draft} onChange={change} />
          <MultiSelect
            label="Partitions"
            placeholder={draft.partitions.length === 0 ? "All" : undefined}
            data={Array.from({ length: partitionCount }, (_, partition) => String(partition))}
            value={draft.partitions.map(String)}
            onChange={(chosen) => change({ partitions: chosen.map(Number).sort((left, right) => left - right) })}
            searchable
            clearable
            clearButtonProps={{ "aria-label": "All partitions" }}
            miw={150}
          />
          <TextInput
            label="Contains"
            placeholder="In the key, the value or a header"
            type="search"
            data-search
            value={draft.text}
            onChange={(event) => change({ text: event.currentTarget.value })}
            flex={1}
            miw={200}
          />
          <Button
            variant="default"
            leftSection={<IconAdjustments size={16} aria-hidden />}
            onClick={toggle}
            aria-expanded={isOpen}
          >
            Filters and formats
          </Button>
          <Button type="submit" loading={isBusy} leftSection={<IconSearch size={16} aria-hidden />}>
            Find
          </Button>
        </Group>
        <Collapse expanded={isOpen}>
          <MoreFields draft={draft} change={change} schemas={draftSchemas} onSchemas={setDraftSchemas} />
          <Button variant="subtle" size="compact-sm" mt="sm" onClick={clear}>
            Clear all
          </Button>
        </Collapse>
      </Stack>
    </Paper>
  );
}

interface MoreProps {
  draft: MessageQuery;
  change: (changes: Partial<MessageQuery>) => void;
  schemas: Schemas;
  onSchemas: (schemas: Schemas) => void;
}

function MoreFields({ draft, change, schemas, onSchemas }: MoreProps) {
  const text = (field: "key" | "jsonPath" | "jsonEquals" | "header", label: string, placeholder: string) => (
    <TextInput
      label={label}
      placeholder={placeholder}
      value={draft[field]}
      onChange={(event) => change({ [field]: event.currentTarget.value })}
    />
  );
  return (
    <Stack gap="sm">
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
        {text("key", "Key equals", "order-17")}
        {text("jsonPath", "JSON field", "customer.address.city")}
        {text("jsonEquals", "JSON field equals", "any value")}
        {text("header", "Has header", "trace-id")}
        <FormatSelect label="Key format" value={draft.keyFormat} onChange={(keyFormat) => change({ keyFormat })} />
        <FormatSelect
          label="Value format"
          value={draft.valueFormat}
          onChange={(valueFormat) => change({ valueFormat })}
        />
        <NativeSelect
          label="Limit"
          data={LIMITS.map((limit) => ({ value: String(limit), label: `${limit} records` }))}
          value={String(draft.limit)}
          onChange={(event) => change({ limit: Number(event.currentTarget.value) })}
        />
        <NativeSelect
          label="Isolation level"
          description="read_uncommitted also shows records of open and aborted transactions"
          data={[...ISOLATIONS]}
          value={draft.isolation}
          onChange={(event) => change({ isolation: event.currentTarget.value as Isolation })}
        />
      </SimpleGrid>
      <SchemaFields
        of="key"
        format={draft.keyFormat}
        schema={schemas.key}
        onChange={(key) => onSchemas({ ...schemas, key })}
      />
      <SchemaFields
        of="value"
        format={draft.valueFormat}
        schema={schemas.value}
        onChange={(value) => onSchemas({ ...schemas, value })}
      />
    </Stack>
  );
}

interface FormatProps {
  label: string;
  value: Format;
  onChange: (format: Format) => void;
}

function FormatSelect({ label, value, onChange }: FormatProps) {
  return (
    <NativeSelect
      label={label}
      data={FORMATS.map((format) => ({ value: format, label: FORMAT_LABELS[format] }))}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value as Format)}
    />
  );
}

const FORMAT_LABELS: Record<Format, string> = {
  auto: "auto-detect",
  text: "text",
  json: "JSON",
  hex: "hexadecimal",
  base64: "Base64",
  avro: "Avro",
  protobuf: "Protobuf",
};

function usesMoreFields(query: MessageQuery): boolean {
  return (
    [query.key, query.jsonPath, query.jsonEquals, query.header].some((text) => text !== "") ||
    query.isolation !== DEFAULT_QUERY.isolation ||
    query.keyFormat !== "auto" ||
    query.valueFormat !== "auto"
  );
}
