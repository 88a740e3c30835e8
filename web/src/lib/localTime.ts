/** Between milliseconds since 1970 and what a field of type `datetime-local` holds. */

export function toLocalField(ms: number): string {
  const time = new Date(ms);
  if (Number.isNaN(time.getTime())) return "";
  const local = new Date(ms - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** Null if no time was chosen. */
export function fromLocalField(field: string): number | null {
  const ms = Date.parse(field);
  return Number.isNaN(ms) ? null : ms;
}
