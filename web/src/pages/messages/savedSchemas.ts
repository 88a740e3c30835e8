/** Pasted schemas of each topic, in the browser's local storage. */

import { useEffect, useState } from "react";

import { NO_SCHEMA, type SchemaText } from "./query";

export interface Schemas {
  key: SchemaText;
  value: SchemaText;
}

const NONE: Schemas = { key: NO_SCHEMA, value: NO_SCHEMA };
const LENGTH_MAX = 200_000;

export function useSchemas(topic: string): [Schemas, (schemas: Schemas) => void] {
  const [schemas, setSchemas] = useState<Schemas>(() => loadSchemas(topic));
  useEffect(() => setSchemas(loadSchemas(topic)), [topic]);
  return [
    schemas,
    (changed) => {
      setSchemas(changed);
      saveSchemas(topic, changed);
    },
  ];
}

function storageKey(topic: string): string {
  return `kafscale.serde.${topic}`;
}

function loadSchemas(topic: string): Schemas {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey(topic)) ?? "null");
    return isSchemas(stored) ? stored : NONE;
  } catch {
    return NONE;
  }
}

/** Errors of local storage are ignored: the schemas then last until the page is closed. */
function saveSchemas(topic: string, schemas: Schemas): void {
  const encoded = JSON.stringify(schemas);
  try {
    if (encoded === JSON.stringify(NONE)) localStorage.removeItem(storageKey(topic));
    else if (encoded.length <= LENGTH_MAX) localStorage.setItem(storageKey(topic), encoded);
  } catch {
    return;
  }
}

function isSchemas(stored: unknown): stored is Schemas {
  const { key, value } = (stored ?? {}) as Partial<Schemas>;
  return [key, value].every((part) => typeof part?.text === "string" && typeof part.message === "string");
}
