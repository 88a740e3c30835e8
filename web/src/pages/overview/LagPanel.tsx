import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import type { GroupLag } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Panel } from "../../components/Panel";
import { Count } from "../../components/figures";

const COLUMNS: Column<GroupLag>[] = [
  {
    key: "group",
    header: "Group",
    cell: ({ group }) => (
      <Anchor component={Link} to={`/groups/${encodeURIComponent(group)}`}>
        {group}
      </Anchor>
    ),
  },
  {
    key: "topic",
    header: "Topic",
    cell: ({ topic }) => (
      <Anchor component={Link} to={`/topics/${encodeURIComponent(topic)}`}>
        {topic}
      </Anchor>
    ),
  },
  { key: "lag", header: "Lag (records)", align: "right", cell: ({ lag }) => <Count value={lag} /> },
];

export function LagPanel({ lags }: { lags: GroupLag[] }) {
  return (
    <Panel title="Highest consumer lag">
      <DataTable
        label="Highest consumer lag"
        plain
        minWidth={360}
        columns={COLUMNS}
        rows={lags}
        rowKey={({ group, topic }) => `${group}\n${topic}`}
        empty={<EmptyState title="No consumer group has lag." />}
      />
    </Panel>
  );
}
