/** A key or a value in one line, for a row of a table. */

import type { Payload } from "../../api/contract";

const PREVIEW_LENGTH = 160;

export function preview(payload: Payload | null): string {
  if (payload === null) return "";
  const line = payload.format === "json" ? compactJson(payload.text) : payload.text;
  const flat = line.slice(0, 4 * PREVIEW_LENGTH).replace(/\s+/g, " ").trim();
  return flat.length > PREVIEW_LENGTH ? `${flat.slice(0, PREVIEW_LENGTH)}…` : flat;
}

/** What is cut off in the answer does not parse, and is shown as it came. */
function compactJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}
