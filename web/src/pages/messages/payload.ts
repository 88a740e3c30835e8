/** One-line preview of a key or value, for a table row. */

import type { Payload } from "../../api/contract";

const PREVIEW_LENGTH = 160;

export function preview(payload: Payload | null): string {
  if (payload === null) return "";
  const line = payload.format === "json" ? compactJson(payload.text) : payload.text;
  const flat = line.slice(0, 4 * PREVIEW_LENGTH).replace(/\s+/g, " ").trim();
  return flat.length > PREVIEW_LENGTH ? `${flat.slice(0, PREVIEW_LENGTH)}…` : flat;
}

/** Truncated JSON cannot be parsed, and is shown unchanged. */
function compactJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}
