import { clockTime, UNKNOWN } from "../lib/format";
import classes from "./ChartLines.module.css";
import type { Line, Row } from "./chartData";

interface Props {
  row: Row;
  lines: Line[];
  format: (value: number) => string;
  left: number;
  isRightHalf: boolean;
}

/** Tooltip with the values at the hovered time, placed on the side with more space. */
export function ChartHover({ row, lines, format, left, isRightHalf }: Props) {
  return (
    <div className={classes.hover} style={{ left, transform: isRightHalf ? "translateX(calc(-100% - 12px))" : "translateX(12px)" }} aria-hidden>
      <div className={classes.hoverTime}>{clockTime(row.atMs)}</div>
      {lines.map(({ label, color }, index) => (
        <div key={label}>
          <span className={classes.swatch} style={{ background: `var(${color})` }} />
          {label} <strong>{row.values[index] === undefined ? UNKNOWN : format(row.values[index])}</strong>
        </div>
      ))}
    </div>
  );
}
