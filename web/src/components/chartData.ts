import type { Series } from "../api/contract";

/** The values of all series at one time, in the order of the series; undefined if a series has no point then. */
export interface Row {
  atMs: number;
  values: (number | undefined)[];
}

export interface Line {
  label: string;
  /** The CSS variable of the colour in the active colour scheme. */
  color: string;
}

const COLOR_COUNT = 8;

/** The CSS variables are defined in ChartLines.module.css. */
export function colorOf(index: number): string {
  return `--chart-line-${(index % COLOR_COUNT) + 1}`;
}

export function mergeSeries(series: Series[]): Row[] {
  const rows = new Map<number, Row>();
  for (const [index, { points }] of series.entries()) {
    for (const { atMs, value } of points) {
      const row = rows.get(atMs) ?? { atMs, values: series.map(() => undefined) };
      row.values[index] = value;
      rows.set(atMs, row);
    }
  }
  return [...rows.values()].sort((a, b) => a.atMs - b.atMs);
}

/** The rows as columns, as uPlot takes them: times, then the values of each line. */
export function columnsOf(rows: Row[], lineCount: number): [number[], ...(number | undefined)[][]] {
  const values = Array.from({ length: lineCount }, (_, index) => rows.map((row) => row.values[index]));
  return [rows.map(({ atMs }) => atMs), ...values];
}

/** Bytes use powers of two, counts whole numbers. */
export type Scale = "binary" | "whole" | "decimal";

const powers = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index);
const roundNumbers = (first: number) => powers(first, 15).flatMap((power) => [1, 2, 5].map((factor) => Number(`${factor}e${power}`)));

/** Axis steps: powers of two, or 1, 2 and 5 times a power of ten. */
export const STEPS: Record<Scale, number[]> = {
  binary: powers(0, 60).map((power) => 2 ** power),
  whole: roundNumbers(0),
  decimal: roundNumbers(-4),
};
