/** The latest cost report, as a bar chart and as a table. */

import { Stack, Text } from "@mantine/core";

import type { CostReport, TopicCost } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Bytes, Count, Time } from "../../components/figures";
import { Panel } from "../../components/Panel";
import { money } from "../../lib/format";
import { CostBars } from "./CostBars";

const DRAWN_TOPICS = 10;
const DAYS_PER_MONTH = 30;
const PAGE_SIZE = 10;

export function CostPanel({ report }: { report: CostReport }) {
  const { topics, currency } = report;
  const drawn = topics.slice(0, DRAWN_TOPICS);
  return (
    <Panel title="Cost of topics">
      <Stack>
        <Text size="sm">
          {money(report.totalPerDay, currency)} per day in total, about {money(report.totalPerDay * DAYS_PER_MONTH, currency)} per month. Calculated{" "}
          <Time ms={report.createdAtMs} />.
        </Text>
        {topics.length === 0 ? (
          <EmptyState title="The report contains no topics." />
        ) : (
          <>
            <div role="img" aria-label={`Most expensive topics: ${drawn.map(({ topic, costPerDay }) => `${topic} ${money(costPerDay, currency)}`).join(", ")} per day.`}>
              <CostBars topics={drawn} currency={currency} />
            </div>
            <DataTable
              plain
              label="Cost of topics"
              columns={columnsFor(currency)}
              rows={topics}
              rowKey={(row) => row.topic}
              searchText={(row) => row.topic}
              initial={{ sort: "cost", order: "desc", size: PAGE_SIZE }}
              minWidth={520}
            />
          </>
        )}
      </Stack>
    </Panel>
  );
}

function columnsFor(currency: string): Column<TopicCost>[] {
  return [
    { key: "topic", header: "Topic", cell: (row) => row.topic, sortBy: (row) => row.topic },
    { key: "size", header: "Stored", align: "right", cell: (row) => <Bytes value={row.storedBytes} />, sortBy: (row) => row.storedBytes },
    { key: "records", header: "Records", align: "right", cell: (row) => <Count value={row.recordCount} />, sortBy: (row) => row.recordCount },
    { key: "cost", header: "Cost per day", align: "right", cell: (row) => money(row.costPerDay, currency), sortBy: (row) => row.costPerDay },
  ];
}
