/** Converts between epoch milliseconds and the value of a `datetime-local` input. */

export function toLocalField(ms: number): string {
  const time = new Date(ms);
  if (Number.isNaN(time.getTime())) return "";
  const local = new Date(ms - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** Returns null for an empty or invalid value. */
export function fromLocalField(field: string): number | null {
  const ms = Date.parse(field);
  return Number.isNaN(ms) ? null : ms;
}
