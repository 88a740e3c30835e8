/** Human-readable numbers, sizes and times. An unknown value is a dash, never 0. */

export const UNKNOWN = "–";

type Maybe = number | null | undefined;

const IEC = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

function isKnown(value: Maybe): value is number {
  return value !== null && value !== undefined && Number.isFinite(value);
}

/** 1536 → "1.5 KiB". */
export function bytes(value: Maybe): string {
  if (!isKnown(value)) return UNKNOWN;
  let amount = Math.abs(value);
  let unit = 0;
  while (amount >= 1024 && unit < IEC.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || amount >= 100 ? 0 : 1;
  return `${value < 0 ? "-" : ""}${amount.toFixed(digits).replace(/\.0$/, "")} ${IEC[unit]}`;
}

export function byteRate(value: Maybe): string {
  return isKnown(value) ? `${bytes(value)}/s` : UNKNOWN;
}

/** 1234567 → "1,234,567". */
export function count(value: Maybe): string {
  return isKnown(value) ? whole.format(value) : UNKNOWN;
}

/** 1234567 → "1.2M": only where the title shows the exact number. */
export function compact(value: Maybe): string {
  return isKnown(value) ? short.format(value) : UNKNOWN;
}

export function rate(value: Maybe, unit = ""): string {
  if (!isKnown(value)) return UNKNOWN;
  const number = value !== 0 && Math.abs(value) < 10 ? value.toFixed(1).replace(/\.0$/, "") : compact(value);
  return `${number}${unit && ` ${unit}`}/s`;
}

export function percent(value: Maybe): string {
  if (!isKnown(value)) return UNKNOWN;
  return `${(value * 100).toFixed(value > 0 && value < 0.1 ? 1 : 0)}%`;
}

export function money(value: Maybe, currency = "USD"): string {
  if (!isKnown(value)) return UNKNOWN;
  const digits = value !== 0 && Math.abs(value) < 0.1 ? 4 : 2;
  return new Intl.NumberFormat("en", { style: "currency", currency, minimumFractionDigits: 2, maximumFractionDigits: digits }).format(value);
}

/** 90_061_000 → "1 d 1 h"; at most two units. */
export function duration(ms: Maybe): string {
  if (!isKnown(ms)) return UNKNOWN;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([amount]) => amount > 0);
  return parts
    .slice(first, first + 2)
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount} ${unit}`)
    .join(" ");
}

/** Seconds as a latency: 0.0123 → "12 ms". */
export function latency(seconds: Maybe): string {
  if (!isKnown(seconds)) return UNKNOWN;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  return `${seconds.toFixed(1)} s`;
}

export function exactTime(ms: Maybe): string {
  return isKnown(ms) ? exact.format(ms) : UNKNOWN;
}

export function clockTime(ms: Maybe): string {
  return isKnown(ms) ? clock.format(ms) : UNKNOWN;
}

/** "3 min ago", "in 2 h", "now". */
export function relativeTime(ms: Maybe, now: number = Date.now()): string {
  if (!isKnown(ms)) return UNKNOWN;
  const distance = now - ms;
  if (Math.abs(distance) < 2_000) return "now";
  const [largest] = duration(Math.abs(distance)).split(/(?<=[a-z]) /);
  return distance > 0 ? `${largest} ago` : `in ${largest}`;
}

/** plural(1, "partition") → "1 partition"; plural(2, "reply", "replies") → "2 replies". */
export function plural(amount: number, one: string, many = `${one}s`): string {
  return `${count(amount)} ${amount === 1 ? one : many}`;
}
