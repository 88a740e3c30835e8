import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import type { GroupOffset } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Panel } from "../../components/Panel";
import { count } from "../../lib/format";

const COLUMNS: Column<GroupOffset>[] = [
  {
    key: "topic",
    header: "Topic",
    cell: (row) => (
      <Anchor component={Link} to={`/topics/${encodeURIComponent(row.topic)}`} size="sm">
        {row.topic}
      </Anchor>
    ),
    sortBy: (row) => row.topic,
  },
  { key: "client", header: "Assigned to", cell: (row) => <Assignee row={row} />, sortBy: (row) => row.clientId },
  { key: "partition", header: "Partition", align: "right", cell: (row) => row.partition, sortBy: (row) => row.partition },
  { key: "committed", header: "Committed offset", align: "right", cell: (row) => <Committed row={row} />, sortBy: (row) => row.committedOffset },
  { key: "end", header: "End offset", align: "right", cell: (row) => <span className="ks-mono">{count(row.endOffset)}</span>, sortBy: (row) => row.endOffset },
  { key: "lag", header: "Lag", align: "right", cell: (row) => <span className="ks-mono">{count(row.lag)}</span>, sortBy: (row) => row.lag },
];

export function OffsetsTable({ offsets }: { offsets: GroupOffset[] }) {
  return (
    <Panel title="Offsets">
      <DataTable
        plain
        label="Offsets"
        columns={COLUMNS}
        rows={offsets}
        rowKey={(row) => `${row.topic}/${row.partition}`}
        searchText={(row) => `${row.topic} ${row.clientId ?? ""}`}
        initial={{ sort: "lag", order: "desc" }}
        empty={<EmptyState title="The group has committed no offsets." />}
      />
    </Panel>
  );
}

/** Links to the next record that the group reads. */
function Committed({ row }: { row: GroupOffset }) {
  if (row.committedOffset === null) return <>–</>;
  const link = `/topics/${encodeURIComponent(row.topic)}/messages?from=offset&offset=${row.committedOffset}&partitions=${row.partition}`;
  return (
    <Anchor component={Link} to={link} size="sm" className="ks-mono" title={row.metadata || "Show the next record"}>
      {count(row.committedOffset)}
    </Anchor>
  );
}

function Assignee({ row }: { row: GroupOffset }) {
  if (row.memberId === null) return <>unassigned</>;
  return (
    <span title={row.memberId}>
      {row.clientId} {row.host && `at ${row.host.replace(/^\//, "")}`}
    </span>
  );
}
