/** The form for an offset reset: its fields, validation and request. */

import type { Reset } from "../../api/contract";

export type ResetKind = Reset["to"]["kind"];

export interface ResetForm {
  kind: ResetKind;
  offset: string;
  shift: string;
  /** The value of a `datetime-local` input. */
  time: string;
  topics: string[];
}

export const RESET_KINDS: readonly { value: ResetKind; label: string }[] = [
  { value: "earliest", label: "Earliest offset" },
  { value: "latest", label: "Latest offset (skip all records)" },
  { value: "time", label: "First record at or after a time" },
  { value: "offset", label: "Specific offset" },
  { value: "shift", label: "Shift by a number of records" },
  { value: "current", label: "Current offset (commit again)" },
];

export const EMPTY_FORM: ResetForm = { kind: "earliest", offset: "0", shift: "-100", time: "", topics: [] };

export function validationError(form: ResetForm): string | null {
  if (form.kind === "offset" && !/^\d{1,16}$/.test(form.offset)) return "Enter an offset: a whole number, 0 or more.";
  if (form.kind === "shift" && !/^-?\d{1,16}$/.test(form.shift)) return "Enter a whole number; a negative number moves back.";
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
