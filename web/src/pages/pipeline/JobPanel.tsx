import { Stack } from "@mantine/core";

import type { Job, Run } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { Facts } from "../../components/Facts";
import { Bytes, Time } from "../../components/figures";
import { Note } from "../../components/Note";
import { Panel } from "../../components/Panel";
import { StateBadge } from "../../components/StateBadge";
import { anchorOf } from "./JobsTable";
import { recordsOf, runDuration, topicsOf } from "./runs";

const PAGE_SIZE = 10;

const COLUMNS: Column<Run>[] = [
  { key: "outcome", header: "Outcome", cell: (row) => <StateBadge state={row.outcome} />, sortBy: (row) => row.outcome },
  { key: "started", header: "Started", cell: (row) => <Time ms={row.startedAtMs} />, sortBy: (row) => row.startedAtMs },
  { key: "topics", header: "Topics", cell: topicsOf },
  { key: "took", header: "Duration", align: "right", cell: (row) => runDuration(row, Date.now()), sortBy: (row) => (row.endedAtMs ?? Date.now()) - row.startedAtMs },
  { key: "records", header: "Records", align: "right", cell: recordsOf, sortBy: (row) => row.recordsIn },
  { key: "size", header: "Size", align: "right", cell: (row) => <Bytes value={row.sizeBytes} />, sortBy: (row) => row.sizeBytes },
];

/** The runs of one job; a row expands to the details of the run. */
export function JobPanel({ job }: { job: Job }) {
  return (
    <div id={anchorOf(job.job)}>
      <Panel title={`Runs of ${job.job}`}>
        <DataTable
          plain
          label={`Runs of ${job.job}`}
          columns={COLUMNS}
          rows={job.runs}
          rowKey={(row) => row.startedAtMs}
          initial={{ sort: "started", order: "desc", size: PAGE_SIZE }}
          expand={(row) => <RunDetail run={row} />}
          minWidth={760}
        />
      </Panel>
    </div>
  );
}

function RunDetail({ run }: { run: Run }) {
  return (
    <Stack gap="sm">
      {run.error && (
        <Note tone="bad" title="Run failed">
          {run.error}
        </Note>
      )}
      <Facts
        facts={[
          { label: "Topics", value: run.topics.join(", ") || "all" },
          { label: "Newest record", value: <Time ms={run.newestTimestampMs} /> },
          { label: "Ended", value: run.endedAtMs === null ? "running" : <Time ms={run.endedAtMs} /> },
          ...Object.entries(run.details).map(([label, value]) => ({ label, value: value === null ? "–" : String(value) })),
        ]}
      />
    </Stack>
  );
}
