/** What a form for moving a group asks, and how it becomes a request; a sentence says what is missing. */

import type { Reset } from "../../api/contract";

export type ResetKind = Reset["to"]["kind"];

export interface ResetForm {
  kind: ResetKind;
  offset: string;
  shift: string;
  /** As a field of type `datetime-local` writes it. */
  time: string;
  topics: string[];
}

export const RESET_KINDS: readonly { value: ResetKind; label: string }[] = [
  { value: "earliest", label: "the earliest record that is kept" },
  { value: "latest", label: "the end: skip all there is" },
  { value: "time", label: "the first record at or after a time" },
  { value: "offset", label: "an offset" },
  { value: "shift", label: "so many records on, or back" },
  { value: "current", label: "where it is (commit it again)" },
];

export const EMPTY_FORM: ResetForm = { kind: "earliest", offset: "0", shift: "-100", time: "", topics: [] };

export function problemOf(form: ResetForm): string | null {
  if (form.kind === "offset" && !/^\d{1,16}$/.test(form.offset)) return "Give an offset: a whole number from 0 on.";
  if (form.kind === "shift" && !/^-?\d{1,16}$/.test(form.shift)) return "Give a whole number; negative goes back.";
  if (form.kind === "time" && Number.isNaN(Date.parse(form.time))) return "Choose a date and a time.";
  return null;
}

export function toReset(form: ResetForm, execute: boolean): Reset {
  const topics = Object.fromEntries(form.topics.map((topic) => [topic, []]));
  return {
    to: { kind: form.kind, number: numberOf(form) },
    topics: form.topics.length > 0 ? topics : null,
    execute,
  };
}

function numberOf(form: ResetForm): number {
  switch (form.kind) {
    case "offset":
      return Number(form.offset);
    case "shift":
      return Number(form.shift);
    case "time":
      return Date.parse(form.time);
    default:
      return 0;
  }
}
