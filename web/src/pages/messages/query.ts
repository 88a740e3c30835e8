/**
 * The query for records: as URL parameters and as an API request.
 *
 * Invariant: the URL contains the whole query except pasted schemas, which stay in the browser. A link therefore shows the
 * same records to other users. Default values are omitted.
 */

import type { Browse, Format, Isolation, Message, Reading, Schema } from "../../api/contract";

export type StartKind = "newest" | "earliest" | "offset" | "time";

export interface MessageQuery {
  start: StartKind;
  offset: number;
  timeMs: number;
  partitions: number[];
  limit: number;
  isolation: Isolation;
  key: string;
  text: string;
  jsonPath: string;
  jsonEquals: string;
  header: string;
  keyFormat: Format;
  valueFormat: Format;
}

export const FORMATS: readonly Format[] = ["auto", "text", "json", "hex", "base64", "avro", "protobuf"];
export const START_KINDS: readonly StartKind[] = ["newest", "earliest", "offset", "time"];
export const ISOLATIONS: readonly Isolation[] = ["read_uncommitted", "read_committed"];
export const LIMITS: readonly number[] = [20, 50, 100, 500];

export const DEFAULT_QUERY: MessageQuery = {
  start: "newest",
  offset: 0,
  timeMs: 0,
  partitions: [],
  limit: 50,
  isolation: "read_uncommitted",
  key: "",
  text: "",
  jsonPath: "",
  jsonEquals: "",
  header: "",
  keyFormat: "auto",
  valueFormat: "auto",
};

const TEXT_FIELDS = {
  key: "key",
  text: "text",
  jsonPath: "path",
  jsonEquals: "equals",
  header: "header",
} as const;

export function readQuery(params: URLSearchParams): MessageQuery {
  return {
    start: oneOf(START_KINDS, params.get("from"), DEFAULT_QUERY.start),
    offset: wholeNumber(params.get("offset"), 0),
    timeMs: wholeNumber(params.get("time"), 0),
    partitions: readPartitions(params.get("partitions")),
    limit: oneOf(LIMITS, wholeNumber(params.get("limit"), 0), DEFAULT_QUERY.limit),
    isolation: oneOf(ISOLATIONS, params.get("isolation"), DEFAULT_QUERY.isolation),
    key: params.get(TEXT_FIELDS.key) ?? "",
    text: params.get(TEXT_FIELDS.text) ?? "",
    jsonPath: params.get(TEXT_FIELDS.jsonPath) ?? "",
    jsonEquals: params.get(TEXT_FIELDS.jsonEquals) ?? "",
    header: params.get(TEXT_FIELDS.header) ?? "",
    keyFormat: oneOf(FORMATS, params.get("keyFormat"), "auto"),
    valueFormat: oneOf(FORMATS, params.get("valueFormat"), "auto"),
  };
}

export function writeQuery(query: MessageQuery): URLSearchParams {
  const params = new URLSearchParams();
  if (query.start !== DEFAULT_QUERY.start) params.set("from", query.start);
  if (query.start === "offset") params.set("offset", String(query.offset));
  if (query.start === "time") params.set("time", String(query.timeMs));
  if (query.partitions.length > 0) params.set("partitions", query.partitions.join(","));
  if (query.limit !== DEFAULT_QUERY.limit) params.set("limit", String(query.limit));
  if (query.isolation !== DEFAULT_QUERY.isolation) params.set("isolation", query.isolation);
  for (const [field, name] of Object.entries(TEXT_FIELDS)) {
    const value = query[field as keyof typeof TEXT_FIELDS];
    if (value !== "") params.set(name, value);
  }
  if (query.keyFormat !== "auto") params.set("keyFormat", query.keyFormat);
  if (query.valueFormat !== "auto") params.set("valueFormat", query.valueFormat);
  return params;
}

/** The query of a link to one record. */
export function queryOfRecord(message: Pick<Message, "partition" | "offset">, query: MessageQuery): MessageQuery {
  return {
    ...DEFAULT_QUERY,
    start: "offset",
    offset: message.offset,
    partitions: [message.partition],
    keyFormat: query.keyFormat,
    valueFormat: query.valueFormat,
  };
}

export function toBrowse(
  query: MessageQuery,
  cursor: Record<string, number>,
  schemas: { key: SchemaText; value: SchemaText },
): Browse {
  return {
    partitions: query.partitions,
    start: { kind: query.start, offset: query.offset, timeMs: query.timeMs },
    limit: query.limit,
    isolation: query.isolation,
    cursor,
    filter: {
      key: query.key,
      text: query.text,
      jsonPath: query.jsonPath,
      jsonEquals: query.jsonEquals,
      header: query.header,
    },
    key: toReading(query.keyFormat, schemas.key),
    value: toReading(query.valueFormat, schemas.value),
  };
}

/** A schema as typed; with empty text, the schema registry is used. */
export interface SchemaText {
  text: string;
  message: string;
}

export const NO_SCHEMA: SchemaText = { text: "", message: "" };

export function toSchema(format: Format, schema: SchemaText): Schema | null {
  if (format !== "avro" && format !== "protobuf") return null;
  return { kind: format, text: schema.text, message: format === "protobuf" ? schema.message : "" };
}

function toReading(format: Format, schema: SchemaText): Reading {
  return { format, schema: toSchema(format, schema) };
}

export function isFiltered(query: MessageQuery): boolean {
  return [query.key, query.text, query.jsonPath, query.header].some((text) => text !== "");
}

function readPartitions(text: string | null): number[] {
  if (!text) return [];
  const numbers = text
    .split(",")
    .map((part) => wholeNumber(part, -1))
    .filter((number) => number >= 0);
  return [...new Set(numbers)].sort((left, right) => left - right);
}

function wholeNumber(text: string | null, fallback: number): number {
  if (text === null || !/^\d{1,16}$/.test(text)) return fallback;
  return Number(text);
}

function oneOf<Choice>(choices: readonly Choice[], chosen: unknown, fallback: Choice): Choice {
  return choices.find((choice) => choice === chosen) ?? fallback;
}
