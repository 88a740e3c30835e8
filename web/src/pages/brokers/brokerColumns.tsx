import { Anchor, Text } from "@mantine/core";
import { Link } from "react-router";

import type { Broker, BrokerPartition } from "../../api/contract";
import type { Column } from "../../components/DataTable";
import { StateBadge } from "../../components/StateBadge";
import { ByteRate, Bytes, Count, Time } from "../../components/figures";
import { duration } from "../../lib/format";

export const BROKER_COLUMNS: Column<Broker>[] = [
  {
    key: "id",
    header: "Broker",
    sortBy: ({ id }) => id,
    cell: ({ id, isController }) => (
      <>
        <Anchor component={Link} to={`/brokers/${id}`} fw={500}>
          {id}
        </Anchor>
        {isController && (
          <Text span size="xs" c="dimmed" ml={8}>
            controller
          </Text>
        )}
      </>
    ),
  },
  { key: "state", header: "State", sortBy: ({ state }) => state, cell: ({ state, problems }) => <StateBadge state={state} title={Object.values(problems).join(" ") || undefined} /> },
  { key: "address", header: "Address", sortBy: ({ address }) => address, cell: ({ address }) => <span className="ks-mono">{address ?? "–"}</span> },
  { key: "rack", header: "Rack", sortBy: ({ rack }) => rack, cell: ({ rack }) => rack ?? "–" },
  { key: "partitions", header: "Partitions", align: "right", sortBy: (broker) => broker.partitionCount, cell: (broker) => <Count value={broker.partitionCount} /> },
  { key: "connections", header: "Connections", align: "right", sortBy: (broker) => broker.connections, cell: (broker) => <Count value={broker.connections} /> },
  { key: "produce", header: "Produced", align: "right", sortBy: (broker) => broker.produceBytesPerSecond, cell: (broker) => <ByteRate value={broker.produceBytesPerSecond} /> },
  { key: "fetch", header: "Fetched", align: "right", sortBy: (broker) => broker.fetchBytesPerSecond, cell: (broker) => <ByteRate value={broker.fetchBytesPerSecond} /> },
  {
    key: "uptime",
    header: "Uptime",
    align: "right",
    sortBy: ({ uptimeMs }) => uptimeMs,
    cell: ({ uptimeMs, seenAtMs, state }) => (state === "gone" ? <>last seen <Time ms={seenAtMs} /></> : duration(uptimeMs)),
  },
];

export const PARTITION_COLUMNS: Column<BrokerPartition>[] = [
  {
    key: "topic",
    header: "Topic",
    sortBy: ({ topic, partition }) => `${topic} ${partition}`,
    cell: ({ topic }) => (
      <Anchor component={Link} to={`/topics/${encodeURIComponent(topic)}`}>
        {topic}
      </Anchor>
    ),
  },
  { key: "partition", header: "Partition", align: "right", sortBy: ({ partition }) => partition, cell: ({ partition }) => partition },
  {
    key: "state",
    header: "State",
    sortBy: ({ state }) => state,
    cell: ({ state, movingTo }) => <StateBadge state={movingTo === null ? state : `${state}, to broker ${movingTo}`} tone={movingTo === null ? undefined : "warning"} />,
  },
  { key: "start", header: "Log start offset", align: "right", sortBy: (row) => row.startOffset, cell: (row) => <Count value={row.startOffset} /> },
  { key: "rolled", header: "Rolled offset", align: "right", sortBy: (row) => row.rolledOffset, cell: (row) => <Count value={row.rolledOffset} /> },
  { key: "high", header: "High watermark", align: "right", sortBy: (row) => row.highWatermark, cell: (row) => <Count value={row.highWatermark} /> },
  { key: "size", header: "Size", align: "right", sortBy: ({ sizeBytes }) => sizeBytes, cell: ({ sizeBytes }) => <Bytes value={sizeBytes} /> },
  { key: "epoch", header: "Leader epoch", align: "right", sortBy: ({ leaderEpoch }) => leaderEpoch, cell: ({ leaderEpoch }) => leaderEpoch },
];
