/**
 * uPlot options of a chart.
 *
 * Invariant: lines are straight and the axis starts at 0, so that the chart shows only measured values.
 * Colours are resolved on each drawing, because a canvas does not follow CSS variables.
 */
import type uPlot from "uplot";

import { clockTime } from "../lib/format";
import { type Scale, STEPS } from "./chartData";

export interface ChartStyle {
  /** CSS variables, one per line. */
  colors: string[];
  format: (value: number) => string;
  scale: Scale;
  height: number;
}

/** The hovered time: its row, and its distance from the left edge of the chart. */
export interface HoveredPoint {
  index: number;
  left: number;
  isRightHalf: boolean;
}

const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const VALUE_AXIS_WIDTH = 78;
const TIME_LABEL_WIDTH = 90;
const TIME_AXIS_HEIGHT = 28;
const VALUE_LABEL_HEIGHT = 36;
const HEADROOM_FACTOR = 1.06;
const MINUTE_MS = 60_000;

export function chartOptions(style: ChartStyle, width: number, onHover: (hovered: HoveredPoint | null) => void): uPlot.Options {
  const axis = { font: FONT, stroke: resolveColor("--mantine-color-dimmed"), ticks: { show: false } };
  return {
    width,
    height: style.height,
    ms: 1,
    // Space for the right half of the last time label.
    padding: [10, 30, 0, 0],
    legend: { show: false },
    // No zoom: the next update would undo it.
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 }, move: snapToTime },
    scales: { x: { range: timeRange }, y: { range: (_, __, largest) => [0, (largest ?? 0) > 0 ? largest * HEADROOM_FACTOR : 1] } },
    axes: [
      { ...axis, size: TIME_AXIS_HEIGHT, space: TIME_LABEL_WIDTH, grid: { show: false }, values: (_, times, __, ___, step) => times.map((atMs) => timeLabel(atMs, step)) },
      {
        ...axis,
        size: VALUE_AXIS_WIDTH,
        space: VALUE_LABEL_HEIGHT,
        incrs: STEPS[style.scale],
        grid: { stroke: resolveColor("--mantine-color-default-border"), width: 1, dash: [4, 5] },
        values: (_, values) => values.map(style.format),
      },
    ],
    series: [{}, ...style.colors.map((color) => lineOf(color))],
    hooks: { setCursor: [(plot) => onHover(hoveredPoint(plot))] },
  };
}

function lineOf(color: string): uPlot.Series {
  const stroke = resolveColor(color);
  // A single value is drawn as a dot, because a line needs two.
  const isSingle = (plot: uPlot, index: number) => Array.from(plot.data[index] ?? []).filter((value) => value !== undefined).length === 1;
  return { stroke, width: 2, cap: "round", points: { show: isSingle, size: 5, stroke, fill: stroke } };
}

/** The value of a CSS variable at the chart's element. */
function resolveColor(variable: string): (plot: uPlot) => string {
  return (plot) => getComputedStyle(plot.root).getPropertyValue(variable).trim();
}

/** From the first time to the last, but at least one minute. */
export function timeRange(plot: Pick<uPlot, "data">): [number, number] {
  const times = plot.data[0];
  const last = times[times.length - 1] ?? Date.now();
  return [Math.min(times[0] ?? last, last - MINUTE_MS), last];
}

/** Shows seconds only if the axis step is below a minute. */
export function timeLabel(atMs: number, stepMs: number): string {
  return stepMs < MINUTE_MS ? clockTime(atMs) : clockTime(atMs).slice(0, 5);
}

/** Snaps the cursor line to the time whose values are shown. */
function snapToTime(plot: uPlot, left: number, top: number): [number, number] {
  // A negative position means that the pointer has left the chart.
  const atMs = left < 0 ? undefined : plot.data[0][plot.posToIdx(left)];
  return [atMs === undefined ? left : plot.valToPos(atMs, "x"), top];
}

function hoveredPoint(plot: uPlot): HoveredPoint | null {
  const { idx, left = -1 } = plot.cursor;
  const atMs = idx === null || idx === undefined || left < 0 ? undefined : plot.data[0][idx];
  if (atMs === undefined) return null;
  const x = plot.over.offsetLeft + plot.valToPos(atMs, "x");
  return { index: idx as number, left: x, isRightHalf: x > plot.width / 2 };
}
