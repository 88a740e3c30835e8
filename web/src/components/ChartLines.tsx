/** A line chart with legend and hover tooltip. */
import { lazy, Suspense, useState } from "react";

import { ChartHover } from "./ChartHover";
import classes from "./ChartLines.module.css";
import type { Line, Row, Scale } from "./chartData";
import type { HoveredPoint } from "./chartOptions";

const Plot = lazy(() => import("./Plot"));

interface Props {
  rows: Row[];
  lines: Line[];
  format: (value: number) => string;
  height: number;
  scale: Scale;
}

export function ChartLines({ rows, lines, format, height, scale }: Props) {
  const [hovered, setHovered] = useState<HoveredPoint | null>(null);
  const row = hovered ? rows[hovered.index] : undefined;
  return (
    <div className={classes.chart}>
      <Suspense fallback={<div style={{ height }} />}>
        <Plot rows={rows} lines={lines} format={format} height={height} scale={scale} onHover={setHovered} />
      </Suspense>
      {row && hovered && <ChartHover row={row} lines={lines} format={format} left={hovered.left} isRightHalf={hovered.isRightHalf} />}
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
