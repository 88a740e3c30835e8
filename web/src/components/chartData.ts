import type { Series } from "../api/contract";
import { clockTime } from "../lib/format";

/** One moment, with the value of each series that has one then. */
export type Row = { atMs: number } & Record<string, number>;

export interface Line {
  name: string;
  label: string;
  color: string;
}

/** Told apart by people who do not see all colours, too, on light and on dark. */
const COLORS = ["#14968a", "#d9822b", "#5c7cfa", "#c2549d", "#8a9a2c", "#8b6be0", "#c0563f", "#3a9bc9"];

export function colorOf(index: number): string {
  return COLORS[index % COLORS.length] ?? "#14968a";
}

export function mergeSeries(series: Series[]): Row[] {
  const rows = new Map<number, Row>();
  for (const { name, points } of series) {
    for (const { atMs, value } of points) {
      const row = rows.get(atMs) ?? { atMs };
      row[name] = value;
      rows.set(atMs, row as Row);
    }
  }
  return [...rows.values()].sort((a, b) => a.atMs - b.atMs);
}

/** Bytes are counted in powers of two; of records there are no halves. */
export type Scale = "binary" | "whole" | "decimal";

/** Steps that people count in: powers of two, or 1, 2 and 5 of a power of ten. */
export function niceTicks(rows: Row[], lines: Line[], scale: Scale): number[] {
  const largest = Math.max(0, ...rows.flatMap((row) => lines.map(({ name }) => row[name] ?? 0)));
  if (largest === 0) return [0, 1];
  const rough = scale === "decimal" ? largest / 4 : Math.max(1, largest / 4);
  let step = 2 ** Math.ceil(Math.log2(rough));
  if (scale !== "binary") {
    const power = 10 ** Math.floor(Math.log10(rough));
    step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  }
  return Array.from({ length: Math.ceil(largest / step) + 1 }, (_, index) => index * step);
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const STEPS = [[1, 2, 5, 10, 15, 30].map((n) => n * SECOND), [1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), [1, 2, 3, 6, 12, 24].map((n) => n * HOUR)].flat();

/** Round moments between two, at most so many, with the seconds only where these matter. */
export function niceTimes(from: number, to: number, most: number): { atMs: number; label: string }[] {
  const step = STEPS.find((size) => (to - from) / size <= most) ?? Math.ceil((to - from) / most / (24 * HOUR)) * 24 * HOUR;
  // Round in the clock of whoever looks, not in that of Greenwich.
  const shift = new Date(from).getTimezoneOffset() * MINUTE;
  const first = Math.ceil((from - shift) / step) * step + shift;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, index) => {
    const atMs = first + index * step;
    return { atMs, label: step < MINUTE ? clockTime(atMs) : clockTime(atMs).slice(0, 5) };
  });
}
