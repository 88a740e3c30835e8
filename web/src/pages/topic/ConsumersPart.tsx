import { Anchor, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { api, at } from "../../api/client";
import type { TopicConsumer } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Count } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { StateBadge } from "../../components/StateBadge";

const REFETCH_INTERVAL_MS = 5_000;

const COLUMNS: Column<TopicConsumer>[] = [
  {
    key: "group",
    header: "Group",
    cell: (row) => (
      <Anchor component={Link} to={`/groups/${encodeURIComponent(row.group)}`} size="sm">
        {row.group}
      </Anchor>
    ),
    sortBy: (row) => row.group,
  },
  { key: "state", header: "State", cell: (row) => <StateBadge state={row.state} />, sortBy: (row) => row.state },
  { key: "members", header: "Members", align: "right", cell: (row) => <Count value={row.memberCount} />, sortBy: (row) => row.memberCount },
  { key: "lag", header: "Lag in this topic", align: "right", cell: (row) => <Count value={row.lag} />, sortBy: (row) => row.lag },
];

export function ConsumersPart({ name }: { name: string }) {
  const query = useQuery({
    queryKey: ["topic", name, "consumers"],
    queryFn: ({ signal }) => api.get<TopicConsumer[]>(at`/topics/${name}/consumers`, { signal }),
    refetchInterval: REFETCH_INTERVAL_MS,
  });
  return (
    <Loaded query={query}>
      {(consumers) => (
        <DataTable
          label="Consumers"
          columns={COLUMNS}
          rows={consumers}
          rowKey={(row) => row.group}
          searchText={(row) => row.group}
          initial={{ sort: "lag", order: "desc" }}
          expand={(row) => <LagTable consumer={row} />}
          empty={<EmptyState title="No consumer groups for this topic.">Groups appear here after they commit an offset of this topic.</EmptyState>}
        />
      )}
    </Loaded>
  );
}

function LagTable({ consumer }: { consumer: TopicConsumer }) {
  const rows = Object.entries(consumer.lagByPartition).sort(([left], [right]) => Number(left) - Number(right));
  return (
    <Table aria-label={`Lag of ${consumer.group} by partition`} withRowBorders={false} verticalSpacing={2} w="auto">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Partition</Table.Th>
          <Table.Th ta="right">Lag</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(([partition, lag]) => (
          <Table.Tr key={partition}>
            <Table.Td>{partition}</Table.Td>
            <Table.Td ta="right">
              <Count value={lag} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
