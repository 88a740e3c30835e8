/** Lines over time with their legend, and the figures of the moment that is pointed at. */
import { lazy, Suspense, useState } from "react";

import { ChartHover } from "./ChartHover";
import classes from "./ChartLines.module.css";
import type { Line, Row, Scale } from "./chartData";
import type { Pointed } from "./chartOptions";

const Plot = lazy(() => import("./Plot"));

interface Props {
  rows: Row[];
  lines: Line[];
  format: (value: number) => string;
  height: number;
  scale: Scale;
}

export function ChartLines({ rows, lines, format, height, scale }: Props) {
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const row = pointed ? rows[pointed.index] : undefined;
  return (
    <div className={classes.chart}>
      <Suspense fallback={<div style={{ height }} />}>
        <Plot rows={rows} lines={lines} format={format} height={height} scale={scale} onPoint={setPointed} />
      </Suspense>
      {row && pointed && <ChartHover row={row} lines={lines} format={format} left={pointed.left} isOnTheRight={pointed.isOnTheRight} />}
      {lines.length > 1 && (
        <ul className={classes.legend}>
          {lines.map(({ label, color }) => (
            <li key={label}>
              <span className={classes.swatch} style={{ background: `var(${color})` }} />
              {label}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
