/** Pasted schemas, remembered by this browser for each topic. */

import { useEffect, useState } from "react";

import { NO_SCHEMA, type SchemaText } from "./query";

export interface Schemas {
  key: SchemaText;
  value: SchemaText;
}

const NONE: Schemas = { key: NO_SCHEMA, value: NO_SCHEMA };
const LENGTH_MAX = 200_000;

export function useSchemas(topic: string): [Schemas, (schemas: Schemas) => void] {
  const [schemas, setSchemas] = useState<Schemas>(() => recall(topic));
  useEffect(() => setSchemas(recall(topic)), [topic]);
  return [
    schemas,
    (changed) => {
      setSchemas(changed);
      remember(topic, changed);
    },
  ];
}

function nameOf(topic: string): string {
  return `kafscale.serde.${topic}`;
}

function recall(topic: string): Schemas {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(nameOf(topic)) ?? "null");
    return isSchemas(stored) ? stored : NONE;
  } catch {
    return NONE;
  }
}

/** A browser that refuses to store is no reason to refuse to read. */
function remember(topic: string, schemas: Schemas): void {
  const written = JSON.stringify(schemas);
  try {
    if (written === JSON.stringify(NONE)) localStorage.removeItem(nameOf(topic));
    else if (written.length <= LENGTH_MAX) localStorage.setItem(nameOf(topic), written);
  } catch {
    return;
  }
}

function isSchemas(stored: unknown): stored is Schemas {
  const { key, value } = (stored ?? {}) as Partial<Schemas>;
  return [key, value].every((part) => typeof part?.text === "string" && typeof part.message === "string");
}
