/** Input for a schema; if it is empty, the schema comes from the schema registry. */

import { Stack, TextInput, Textarea } from "@mantine/core";

import type { Format } from "../../api/contract";
import type { SchemaText } from "./query";

interface Props {
  of: "key" | "value";
  format: Format;
  schema: SchemaText;
  onChange: (schema: SchemaText) => void;
}

export function SchemaFields({ of, format, schema, onChange }: Props) {
  if (format !== "avro" && format !== "protobuf") return null;
  const isAvro = format === "avro";
  return (
    <Stack gap="xs">
      <Textarea
        label={isAvro ? `Avro schema of the ${of}` : `.proto file of the ${of}`}
        description="Leave empty to use the schema registry. The schema is stored in this browser, not in links."
        placeholder={isAvro ? '{"type": "record", "name": "Order", …}' : 'syntax = "proto3"; message Order { … }'}
        rows={5}
        resize="vertical"
        value={schema.text}
        onChange={(event) => onChange({ ...schema, text: event.currentTarget.value })}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      />
      {!isAvro && (
        <TextInput
          label={`Message type of the ${of}`}
          placeholder="Order"
          value={schema.message}
          onChange={(event) => onChange({ ...schema, message: event.currentTarget.value })}
        />
      )}
    </Stack>
  );
}
