import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import type { Broker } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Panel } from "../../components/Panel";
import { StateBadge } from "../../components/StateBadge";
import { ByteRate, Count } from "../../components/figures";

const COLUMNS: Column<Broker>[] = [
  {
    key: "id",
    header: "Broker",
    sortBy: ({ id }) => id,
    cell: ({ id }) => (
      <Anchor component={Link} to={`/brokers/${id}`}>
        {id}
      </Anchor>
    ),
  },
  { key: "state", header: "State", sortBy: ({ state }) => state, cell: ({ state }) => <StateBadge state={state} /> },
  { key: "partitions", header: "Partitions", align: "right", sortBy: ({ partitionCount }) => partitionCount, cell: ({ partitionCount }) => <Count value={partitionCount} /> },
  { key: "produce", header: "Produced", align: "right", sortBy: (broker) => broker.produceBytesPerSecond, cell: (broker) => <ByteRate value={broker.produceBytesPerSecond} /> },
  { key: "fetch", header: "Fetched", align: "right", sortBy: (broker) => broker.fetchBytesPerSecond, cell: (broker) => <ByteRate value={broker.fetchBytesPerSecond} /> },
];

export function BrokerPanel({ brokers }: { brokers: Broker[] }) {
  return (
    <Panel title="Brokers">
      <DataTable
        label="Brokers"
        plain
        minWidth={420}
        columns={COLUMNS}
        rows={brokers}
        rowKey={({ id }) => id}
        initial={{ sort: "id", size: 10 }}
        empty={<EmptyState title="No brokers are registered.">Start a broker with kafscale broker.</EmptyState>}
      />
    </Panel>
  );
}
