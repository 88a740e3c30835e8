/** The one place that knows uPlot: a chunk of its own, which comes with the first chart that somebody looks at. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import classes from "./ChartLines.module.css";
import { columnsOf, type Line, type Row } from "./chartData";
import { chartOptions, type Look, type Pointed } from "./chartOptions";

interface Props extends Omit<Look, "colors"> {
  rows: Row[];
  lines: Line[];
  onPoint: (pointed: Pointed | null) => void;
}

export default function Plot({ rows, lines, format, scale, height, onPoint }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const colors = lines.map(({ color }) => color).join();

  useEffect(() => {
    const element = host.current as HTMLDivElement;
    const look = { colors: colors.split(","), format, scale, height };
    const drawing = new uPlot(chartOptions(look, element.getBoundingClientRect().width, onPoint), undefined, element);
    plot.current = drawing;
    const sizes = new ResizeObserver(() => drawing.setSize({ width: element.getBoundingClientRect().width, height }));
    sizes.observe(element);
    const schemes = new MutationObserver(() => drawing.redraw(false));
    schemes.observe(document.documentElement, { attributeFilter: ["data-mantine-color-scheme"] });
    return () => {
      sizes.disconnect();
      schemes.disconnect();
      drawing.destroy();
      onPoint(null);
    };
  }, [colors, format, scale, height, onPoint]);

  // After the drawing was made anew as well, which has no values yet.
  useEffect(() => {
    plot.current?.setData(columnsOf(rows, lines.length) as uPlot.AlignedData);
  }, [rows, colors, format, scale, height, onPoint]);

  return <div ref={host} className={classes.plot} style={{ height }} />;
}
