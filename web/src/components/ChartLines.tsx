/**
 * Lines over time, drawn by ourselves: a chart library would weigh more than all pages together.
 *
 * The law: lines go straight from value to value and rest on zero, so that nothing is drawn that was not measured.
 */
import { useElementSize } from "@mantine/hooks";
import { type PointerEvent, useState } from "react";

import { ChartHover } from "./ChartHover";
import classes from "./ChartLines.module.css";
import { type Line, niceTicks, niceTimes, type Row, type Scale } from "./chartData";

interface Props {
  rows: Row[];
  lines: Line[];
  format: (value: number) => string;
  height: number;
  scale: Scale;
}

const LEFT = 78;
const RIGHT = 10;
const TOP = 10;
const BOTTOM = 24;
const WIDTH_UNTIL_MEASURED = 600;
const WIDTH_OF_A_TIME = 90;

export function ChartLines({ rows, lines, format, height, scale }: Props) {
  const { ref, width: measured } = useElementSize<HTMLDivElement>();
  const [pointed, setPointed] = useState<number | null>(null);
  const width = measured || WIDTH_UNTIL_MEASURED;
  const ticks = niceTicks(rows, lines, scale);
  const first = rows[0]?.atMs ?? 0;
  const span = Math.max(1, (rows.at(-1)?.atMs ?? 0) - first);
  const x = (atMs: number) => LEFT + ((atMs - first) / span) * (width - LEFT - RIGHT);
  const y = (value: number) => height - BOTTOM - (value / (ticks.at(-1) || 1)) * (height - TOP - BOTTOM);
  const times = niceTimes(first, first + span, Math.max(2, Math.floor((width - LEFT) / WIDTH_OF_A_TIME)));

  function point(event: PointerEvent<SVGSVGElement>) {
    const at = event.clientX - event.currentTarget.getBoundingClientRect().left;
    const distances = rows.map((row) => Math.abs(x(row.atMs) - at));
    setPointed(distances.indexOf(Math.min(...distances)));
  }

  const row = pointed === null ? undefined : rows[pointed];
  return (
    <div ref={ref} className={classes.chart}>
      <svg width="100%" height={height} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden onPointerMove={point} onPointerLeave={() => setPointed(null)}>
        {ticks.map((tick) => (
          <g key={tick}>
            <line className={classes.grid} x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text className={classes.label} x={LEFT - 8} y={y(tick)} dy="0.32em" textAnchor="end">
              {format(tick)}
            </text>
          </g>
        ))}
        {times.map(({ atMs, label }) => (
          <text key={atMs} className={classes.label} x={x(atMs)} y={height - 6} textAnchor="middle">
            {label}
          </text>
        ))}
        {lines.map(({ name, color }) => (
          <path key={name} className={classes.line} stroke={color} d={pathOf(rows, name, x, y)} />
        ))}
        {row && <line className={classes.pointer} x1={x(row.atMs)} x2={x(row.atMs)} y1={TOP} y2={height - BOTTOM} />}
        {row && lines.map(({ name, color }) => row[name] !== undefined && <circle key={name} cx={x(row.atMs)} cy={y(row[name])} r={3.5} fill={color} />)}
      </svg>
      {row && <ChartHover row={row} lines={lines} format={format} left={x(row.atMs)} isOnTheRight={x(row.atMs) > width / 2} />}
      {lines.length > 1 && (
        <ul className={classes.legend}>
          {lines.map(({ name, label, color }) => (
            <li key={name}>
              <span className={classes.swatch} style={{ background: color }} />
              {label}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** A value that stands alone is a dot: a line of no length with round ends. */
function pathOf(rows: Row[], name: string, x: (atMs: number) => number, y: (value: number) => number): string {
  const points = rows.filter((row) => row[name] !== undefined).map((row) => `${x(row.atMs).toFixed(1)},${y(row[name] ?? 0).toFixed(1)}`);
  return points.length === 1 ? `M${points[0]}L${points[0]}` : points.length ? `M${points.join("L")}` : "";
}
