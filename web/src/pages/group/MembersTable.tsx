import { Stack, Text } from "@mantine/core";

import type { Member } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Panel } from "../../components/Panel";
import { rangesOf } from "./ranges";

const COLUMNS: Column<Member>[] = [
  { key: "client", header: "Client", cell: (row) => row.clientId, sortBy: (row) => row.clientId },
  { key: "host", header: "Host", cell: (row) => row.host.replace(/^\//, ""), sortBy: (row) => row.host },
  { key: "member", header: "Member", cell: (row) => <MemberId row={row} />, sortBy: (row) => row.memberId },
  { key: "assignment", header: "Assignment", cell: (row) => <Assignment row={row} /> },
  { key: "partitions", header: "Partitions", align: "right", cell: (row) => partitionCount(row), sortBy: partitionCount },
];

export function MembersTable({ members }: { members: Member[] }) {
  return (
    <Panel title="Members">
      <DataTable
        plain
        label="Members"
        columns={COLUMNS}
        rows={members}
        rowKey={(row) => row.memberId}
        searchText={(row) => `${row.clientId} ${row.host} ${row.memberId}`}
        initial={{ sort: "client" }}
        empty={<EmptyState title="No active members.">The committed offsets are kept until consumers join again.</EmptyState>}
      />
    </Panel>
  );
}

function partitionCount(row: Member): number {
  return Object.values(row.assignment).reduce((sum, partitions) => sum + partitions.length, 0);
}

function MemberId({ row }: { row: Member }) {
  return (
    <Text size="xs" className="ks-mono" style={{ overflowWrap: "anywhere" }} title={row.instanceId ? "Static member (group.instance.id)" : undefined}>
      {row.instanceId ? `${row.instanceId} (${row.memberId})` : row.memberId}
    </Text>
  );
}

function Assignment({ row }: { row: Member }) {
  const topics = Object.entries(row.assignment).sort(([left], [right]) => left.localeCompare(right, "en"));
  if (topics.length === 0) return <>none</>;
  return (
    <Stack gap={0}>
      {topics.map(([topic, partitions]) => (
        <Text key={topic} size="sm">
          {topic}: {rangesOf(partitions)}
        </Text>
      ))}
    </Stack>
  );
}
