/** Values over time: as a line chart or as a table. */
import { Button, Stack, Text } from "@mantine/core";
import { useMemo, useState } from "react";

import type { Series } from "../api/contract";
import { byteRate, bytes, clockTime, compact, count, money, rate } from "../lib/format";
import { ChartLines } from "./ChartLines";
import { Panel } from "./Panel";
import { PointTable } from "./PointTable";
import { colorOf, mergeSeries, type Scale } from "./chartData";

export type Unit = "bytes" | "bytes/s" | "count" | "requests/s" | "usd";

const FORMATS: Record<Unit, (value: number) => string> = {
  bytes,
  "bytes/s": byteRate,
  count: (value) => (value >= 1_000_000 ? compact(value) : count(value)),
  "requests/s": (value) => rate(value),
  usd: (value) => money(value),
};

const SCALES: Record<Unit, Scale> = { bytes: "binary", "bytes/s": "binary", count: "whole", "requests/s": "decimal", usd: "decimal" };

interface Props {
  title: string;
  series: Series[];
  unit: Unit;
  /** Labels of the series: { produce: "Produced" }. */
  names?: Record<string, string>;
  height?: number;
  empty?: string;
}

export function TimeChart({ title, series, unit, names = {}, height = 220, empty = "No data yet: the console has just started to collect it." }: Props) {
  const [isTable, setTable] = useState(false);
  const rows = useMemo(() => mergeSeries(series), [series]);
  const format = FORMATS[unit];
  const lines = series.map(({ name }, index) => ({ label: names[name] ?? name, color: colorOf(index) }));
  const last = rows.at(-1);
  const description = last && lines.map(({ label }, index) => `${label} ${last.values[index] === undefined ? "unknown" : format(last.values[index])}`).join(", ");

  return (
    <Panel
      title={title}
      actions={
        rows.length > 0 && (
          <Button size="compact-xs" variant="subtle" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
            {isTable ? "Show as a chart" : "Show as a table"}
          </Button>
        )
      }
    >
      {!last ? (
        <Stack h={height} justify="center" align="center">
          <Text size="sm" c="dimmed" ta="center">
            {empty}
          </Text>
        </Stack>
      ) : isTable ? (
        <PointTable title={title} rows={rows} lines={lines} format={format} height={height} />
      ) : (
        <div role="img" aria-label={`${title}: ${description} at ${clockTime(last.atMs)}. The table has all values.`}>
          <ChartLines rows={rows} lines={lines} format={format} height={height} scale={SCALES[unit]} />
        </div>
      )}
    </Panel>
  );
}
