import { ScrollArea, Table } from "@mantine/core";

import { clockTime, exactTime, UNKNOWN } from "../lib/format";
import type { Line, Row } from "./chartData";

const ROW_COUNT_MAX = 120;

interface Props {
  title: string;
  rows: Row[];
  lines: Line[];
  format: (value: number) => string;
  height: number;
}

/** The points of a chart as a table, newest first. */
export function PointTable({ title, rows, lines, format, height }: Props) {
  return (
    <ScrollArea h={height} type="auto" viewportProps={{ tabIndex: 0, "aria-label": `${title} as a table`, role: "region" }}>
      <Table aria-label={title} stickyHeader>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Time</Table.Th>
            {lines.map(({ label }) => (
              <Table.Th key={label} ta="right">
                {label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows
            .slice(-ROW_COUNT_MAX)
            .reverse()
            .map((row) => (
              <Table.Tr key={row.atMs}>
                <Table.Td title={exactTime(row.atMs)}>{clockTime(row.atMs)}</Table.Td>
                {lines.map(({ label }, index) => (
                  <Table.Td key={label} ta="right">
                    {row.values[index] === undefined ? UNKNOWN : format(row.values[index])}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
        </Table.Tbody>
      </Table>
    </ScrollArea>
  );
}
