/** The only module that imports uPlot: a separate chunk, loaded with the first chart. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import classes from "./ChartLines.module.css";
import { columnsOf, type Line, type Row } from "./chartData";
import { chartOptions, type ChartStyle, type HoveredPoint } from "./chartOptions";

interface Props extends Omit<ChartStyle, "colors"> {
  rows: Row[];
  lines: Line[];
  onHover: (hovered: HoveredPoint | null) => void;
}

export default function Plot({ rows, lines, format, scale, height, onHover }: Props) {
  const container = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const colors = lines.map(({ color }) => color).join();

  useEffect(() => {
    const element = container.current as HTMLDivElement;
    const style = { colors: colors.split(","), format, scale, height };
    const created = new uPlot(chartOptions(style, element.getBoundingClientRect().width, onHover), undefined, element);
    plot.current = created;
    const resizeObserver = new ResizeObserver(() => created.setSize({ width: element.getBoundingClientRect().width, height }));
    resizeObserver.observe(element);
    const schemeObserver = new MutationObserver(() => created.redraw(false));
    schemeObserver.observe(document.documentElement, { attributeFilter: ["data-mantine-color-scheme"] });
    return () => {
      resizeObserver.disconnect();
      schemeObserver.disconnect();
      created.destroy();
      onHover(null);
    };
  }, [colors, format, scale, height, onHover]);

  // Also runs after the plot was created again, because a new plot has no data.
  useEffect(() => {
    plot.current?.setData(columnsOf(rows, lines.length) as uPlot.AlignedData);
  }, [rows, colors, format, scale, height, onHover]);

  return <div ref={container} className={classes.plot} style={{ height }} />;
}
