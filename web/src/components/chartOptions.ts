/**
 * What uPlot is told about a chart.
 *
 * The law: lines go straight from value to value and rest on zero, so that nothing is drawn that was not measured.
 * Colours are asked for at each drawing, for a canvas does not follow the CSS variables by itself.
 */
import type uPlot from "uplot";

import { clockTime } from "../lib/format";
import { type Scale, STEPS } from "./chartData";

export interface Look {
  /** Names of CSS variables, one a line. */
  colors: string[];
  format: (value: number) => string;
  scale: Scale;
  height: number;
}

/** A moment by its row, and how far from the left of the chart it is. */
export interface Pointed {
  index: number;
  left: number;
  isOnTheRight: boolean;
}

const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const WIDTH_OF_VALUES = 78;
const WIDTH_OF_A_TIME = 90;
const HEIGHT_OF_TIMES = 28;
const HEIGHT_OF_A_STEP = 36;
const ROOM_ABOVE = 1.06;
const MINUTE_MS = 60_000;

export function chartOptions(look: Look, width: number, onPoint: (pointed: Pointed | null) => void): uPlot.Options {
  const text = { font: FONT, stroke: colored("--mantine-color-dimmed"), ticks: { show: false } };
  return {
    width,
    height: look.height,
    ms: 1,
    // Half of the last time stands to the right of the lines.
    padding: [10, 30, 0, 0],
    legend: { show: false },
    // Nothing is to be zoomed: the next look would undo it.
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 }, move: toTheMoment },
    scales: { x: { range: timeRange }, y: { range: (_, __, largest) => [0, (largest ?? 0) > 0 ? largest * ROOM_ABOVE : 1] } },
    axes: [
      { ...text, size: HEIGHT_OF_TIMES, space: WIDTH_OF_A_TIME, grid: { show: false }, values: (_, times, __, ___, step) => times.map((atMs) => timeLabel(atMs, step)) },
      {
        ...text,
        size: WIDTH_OF_VALUES,
        space: HEIGHT_OF_A_STEP,
        incrs: STEPS[look.scale],
        grid: { stroke: colored("--mantine-color-default-border"), width: 1, dash: [4, 5] },
        values: (_, values) => values.map(look.format),
      },
    ],
    series: [{}, ...look.colors.map((color) => lineOf(color))],
    hooks: { setCursor: [(plot) => onPoint(pointedOf(plot))] },
  };
}

function lineOf(color: string): uPlot.Series {
  const stroke = colored(color);
  // A value that stands alone would be a line of no length: it is a dot.
  const isAlone = (plot: uPlot, index: number) => Array.from(plot.data[index] ?? []).filter((value) => value !== undefined).length === 1;
  return { stroke, width: 2, cap: "round", points: { show: isAlone, size: 5, stroke, fill: stroke } };
}

/** The value of a CSS variable where the chart is. */
function colored(variable: string): (plot: uPlot) => string {
  return (plot) => getComputedStyle(plot.root).getPropertyValue(variable).trim();
}

/** From the first moment to the last, and a minute at the least, so that few values do not pass for many. */
export function timeRange(plot: Pick<uPlot, "data">): [number, number] {
  const times = plot.data[0];
  const last = times[times.length - 1] ?? Date.now();
  return [Math.min(times[0] ?? last, last - MINUTE_MS), last];
}

/** With the seconds only where these matter. */
export function timeLabel(atMs: number, stepMs: number): string {
  return stepMs < MINUTE_MS ? clockTime(atMs) : clockTime(atMs).slice(0, 5);
}

/** The pointer's line stands where the values are that it shows. */
function toTheMoment(plot: uPlot, left: number, top: number): [number, number] {
  // Whoever does not point any more is to the left of everything.
  const atMs = left < 0 ? undefined : plot.data[0][plot.posToIdx(left)];
  return [atMs === undefined ? left : plot.valToPos(atMs, "x"), top];
}

function pointedOf(plot: uPlot): Pointed | null {
  const { idx, left = -1 } = plot.cursor;
  const atMs = idx === null || idx === undefined || left < 0 ? undefined : plot.data[0][idx];
  if (atMs === undefined) return null;
  const place = plot.over.offsetLeft + plot.valToPos(atMs, "x");
  return { index: idx as number, left: place, isOnTheRight: place > plot.width / 2 };
}
