/** The form for a new record, and its conversion to a request. */

import type { NewPayload, Produce } from "../../api/contract";
import { NO_SCHEMA, type SchemaText, toSchema } from "./query";

export type ProduceFormat = NonNullable<NewPayload["format"]>;

export const PRODUCE_FORMATS: readonly { value: ProduceFormat; label: string }[] = [
  { value: "text", label: "text" },
  { value: "json", label: "JSON" },
  { value: "hex", label: "hexadecimal" },
  { value: "base64", label: "Base64" },
  { value: "avro", label: "Avro, from JSON" },
  { value: "protobuf", label: "Protobuf, from JSON" },
];

export interface Part {
  text: string;
  format: ProduceFormat;
  schema: SchemaText;
}

export interface HeaderField {
  id: number;
  key: string;
  value: string;
}

export interface NewRecord {
  partition: number | null;
  key: Part;
  value: Part;
  isTombstone: boolean;
  headers: HeaderField[];
}

const EMPTY_PART: Part = { text: "", format: "text", schema: NO_SCHEMA };
export const EMPTY_RECORD: NewRecord = {
  partition: null,
  key: EMPTY_PART,
  value: EMPTY_PART,
  isTombstone: false,
  headers: [],
};

/** An empty key field means a null key; this form cannot produce an empty key. */
export function toProduce(record: NewRecord): Produce {
  return {
    partition: record.partition,
    key: record.key.text === "" ? null : toPayload(record.key),
    value: record.isTombstone ? null : toPayload(record.value),
    headers: record.headers.filter(({ key }) => key !== "").map(({ key, value }) => ({ key, value })),
  };
}

export function validationErrors(record: NewRecord): { key?: string; value?: string } {
  const errors: { key?: string; value?: string } = {};
  const key = validationError(record.key);
  const value = validationError(record.value);
  if (record.isTombstone && record.key.text === "") errors.key = "A tombstone needs a key.";
  else if (record.key.text !== "" && key) errors.key = key;
  if (!record.isTombstone && value) errors.value = value;
  return errors;
}

function toPayload(part: Part): NewPayload {
  return { text: part.text, format: part.format, schema: toSchema(part.format, part.schema) };
}

function validationError({ text, format }: Part): string | null {
  if (format === "hex") return /^(\s*[0-9a-f]{2})*\s*$/i.test(text) ? null : "Invalid hexadecimal: expected pairs of digits.";
  if (format === "base64") return isBase64(text) ? null : "Invalid Base64.";
  if (format === "text") return null;
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? `Invalid JSON: ${error.message}.` : "Invalid JSON.";
  }
}

function isBase64(text: string): boolean {
  const compact = text.replace(/\s/g, "");
  return compact.length % 4 === 0 && /^[a-z0-9+/]*={0,2}$/i.test(compact);
}
