import { Stack, Text } from "@mantine/core";

import type { EtcdMember } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Bytes } from "../../components/figures";
import { Panel } from "../../components/Panel";
import { StateBadge } from "../../components/StateBadge";
import { count } from "../../lib/format";

const COLUMNS: Column<EtcdMember>[] = [
  { key: "name", header: "Name", cell: (row) => row.name || "–", sortBy: (row) => row.name },
  { key: "endpoint", header: "Endpoint", cell: (row) => <span className="ks-mono">{row.endpoint}</span>, sortBy: (row) => row.endpoint },
  { key: "state", header: "State", cell: (row) => <State row={row} /> },
  { key: "role", header: "Role", cell: (row) => row.role ?? "–", sortBy: (row) => row.role },
  { key: "version", header: "Version", cell: (row) => row.version ?? "–", sortBy: (row) => row.version },
  { key: "database", header: "Database", align: "right", cell: (row) => <Bytes value={row.databaseBytes} />, sortBy: (row) => row.databaseBytes },
  { key: "used", header: "In use", align: "right", cell: (row) => <Bytes value={row.usedBytes} />, sortBy: (row) => row.usedBytes },
  { key: "revision", header: "Revision", align: "right", cell: (row) => <span className="ks-mono">{count(row.revision)}</span>, sortBy: (row) => row.revision },
];

export function MembersTable({ members }: { members: EtcdMember[] }) {
  return (
    <Panel title="etcd members">
      <DataTable
        plain
        label="etcd members"
        columns={COLUMNS}
        rows={members}
        rowKey={(row) => row.endpoint}
        initial={{ sort: "name" }}
        minWidth={820}
        empty={<EmptyState title="No etcd member is reachable." />}
      />
    </Panel>
  );
}

function State({ row }: { row: EtcdMember }) {
  if (row.problem === null && row.alarms.length === 0) return <StateBadge state="healthy" />;
  return (
    <Stack gap={2}>
      {row.alarms.map((alarm) => (
        <StateBadge key={alarm} state={`alarm ${alarm}`} tone="bad" />
      ))}
      {row.problem && (
        <>
          <StateBadge state={row.role === null ? "unreachable" : "degraded"} />
          <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
            {row.problem}
          </Text>
        </>
      )}
    </Stack>
  );
}
