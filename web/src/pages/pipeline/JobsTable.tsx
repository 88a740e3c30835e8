import { Anchor } from "@mantine/core";

import type { Job } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { Time } from "../../components/figures";
import { StateBadge } from "../../components/StateBadge";
import { duration, percent } from "../../lib/format";
import { runDuration, topicsOf } from "./runs";

export function anchorOf(job: string): string {
  return `job-${job.replace(/[^a-z0-9-]/gi, "-")}`;
}

const COLUMNS: Column<Job>[] = [
  {
    key: "job",
    header: "Job",
    cell: (row) => (
      <Anchor href={`#${anchorOf(row.job)}`} size="sm" style={{ whiteSpace: "nowrap" }}>
        {row.job}
      </Anchor>
    ),
    sortBy: (row) => row.job,
  },
  { key: "outcome", header: "Last run", cell: (row) => <StateBadge state={row.last.outcome} title={row.last.error ?? undefined} />, sortBy: (row) => row.last.outcome },
  { key: "started", header: "Started", cell: (row) => <Time ms={row.last.startedAtMs} />, sortBy: (row) => row.last.startedAtMs },
  { key: "topics", header: "Topics", cell: (row) => topicsOf(row.last) },
  { key: "took", header: "Duration", align: "right", cell: (row) => runDuration(row.last, Date.now()), sortBy: (row) => (row.last.endedAtMs ?? Date.now()) - row.last.startedAtMs },
  {
    key: "freshness",
    header: "Newest record",
    align: "right",
    cell: (row) => <span title="Age of the newest record that the job has processed.">{row.freshnessMs === null ? "–" : `${duration(row.freshnessMs)} old`}</span>,
    sortBy: (row) => row.freshnessMs,
  },
  { key: "rate", header: "Success rate", align: "right", cell: (row) => <span title={`Of the last ${row.runs.length} runs.`}>{percent(row.successRate)}</span>, sortBy: (row) => row.successRate },
];

export function JobsTable({ jobs }: { jobs: Job[] }) {
  return <DataTable label="Jobs" columns={COLUMNS} rows={jobs} rowKey={(row) => row.job} initial={{ sort: "job" }} minWidth={760} />;
}
