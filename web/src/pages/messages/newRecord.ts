/** A record as it is being written in the form, and as the API takes it. */

import type { NewPayload, Produce } from "../../api/contract";
import { NO_SCHEMA, type SchemaText, toSchema } from "./query";

export type WriteFormat = NonNullable<NewPayload["format"]>;

export const WRITE_FORMATS: readonly { value: WriteFormat; label: string }[] = [
  { value: "text", label: "text" },
  { value: "json", label: "JSON" },
  { value: "hex", label: "hexadecimal" },
  { value: "base64", label: "Base64" },
  { value: "avro", label: "Avro, from JSON" },
  { value: "protobuf", label: "Protobuf, from JSON" },
];

export interface Part {
  text: string;
  format: WriteFormat;
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

/** An empty key is none: whoever wants an empty one writes it with a program. */
export function toProduce(record: NewRecord): Produce {
  return {
    partition: record.partition,
    key: record.key.text === "" ? null : toPayload(record.key),
    value: record.isTombstone ? null : toPayload(record.value),
    headers: record.headers.filter(({ key }) => key !== "").map(({ key, value }) => ({ key, value })),
  };
}

export function problemsOf(record: NewRecord): { key?: string; value?: string } {
  const problems: { key?: string; value?: string } = {};
  const key = problemOf(record.key);
  const value = problemOf(record.value);
  if (record.isTombstone && record.key.text === "") problems.key = "A tombstone deletes a key: say which.";
  else if (record.key.text !== "" && key) problems.key = key;
  if (!record.isTombstone && value) problems.value = value;
  return problems;
}

function toPayload(part: Part): NewPayload {
  return { text: part.text, format: part.format, schema: toSchema(part.format, part.schema) };
}

function problemOf({ text, format }: Part): string | null {
  if (format === "hex") return /^(\s*[0-9a-f]{2})*\s*$/i.test(text) ? null : "This is not pairs of hexadecimal digits.";
  if (format === "base64") return isBase64(text) ? null : "This is not Base64.";
  if (format === "text") return null;
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? `This is not JSON: ${error.message}.` : "This is not JSON.";
  }
}

function isBase64(text: string): boolean {
  const compact = text.replace(/\s/g, "");
  return compact.length % 4 === 0 && /^[a-z0-9+/]*={0,2}$/i.test(compact);
}
