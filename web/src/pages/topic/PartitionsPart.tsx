import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import type { Partition, TopicDetail } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { Bytes, Count } from "../../components/figures";
import { StateBadge } from "../../components/StateBadge";
import { TimeChart } from "../../components/TimeChart";
import { count } from "../../lib/format";

/** Offsets are shown in full, never shortened. */
const offset = (value: number | null) => <span className="ks-mono">{count(value)}</span>;

/** Number of durable records that are only in the WAL. */
export function recordsInWal({ highWatermark, rolledOffset }: Partition): number | null {
  return highWatermark === null || rolledOffset === null ? null : highWatermark - rolledOffset;
}

const COLUMNS: Column<Partition>[] = [
  { key: "partition", header: "Partition", cell: (row) => row.partition, sortBy: (row) => row.partition },
  { key: "state", header: "State", cell: (row) => <State row={row} />, sortBy: (row) => row.state },
  { key: "leader", header: "Leader", cell: (row) => <Leader row={row} />, sortBy: (row) => row.leader },
  { key: "start", header: "Log start offset", align: "right", cell: (row) => offset(row.startOffset), sortBy: (row) => row.startOffset },
  { key: "rolled", header: "Rolled offset", align: "right", cell: (row) => offset(row.rolledOffset), sortBy: (row) => row.rolledOffset },
  { key: "watermark", header: "High watermark", align: "right", cell: (row) => offset(row.highWatermark), sortBy: (row) => row.highWatermark },
  { key: "wal", header: "Records in WAL", align: "right", cell: (row) => offset(recordsInWal(row)), sortBy: recordsInWal },
  { key: "records", header: "Records", align: "right", cell: (row) => <Count value={row.recordCount} />, sortBy: (row) => row.recordCount },
  { key: "size", header: "Size", align: "right", cell: (row) => <Bytes value={row.sizeBytes} />, sortBy: (row) => row.sizeBytes },
];

export function PartitionsPart({ detail }: { detail: TopicDetail }) {
  return (
    <>
      <DataTable label="Partitions" columns={COLUMNS} rows={detail.partitions} rowKey={(row) => row.partition} initial={{ sort: "partition" }} minWidth={900} />
      <TimeChart title="Throughput" series={detail.throughput} unit="bytes/s" names={{ produce: "Produced", fetch: "Fetched" }} />
    </>
  );
}

function State({ row }: { row: Partition }) {
  const state = row.leader === null ? "leaderless" : row.movingTo === null ? row.state : "moving";
  return <StateBadge state={state} title={row.movingTo === null ? undefined : `Transfer to broker ${row.movingTo}.`} />;
}

function Leader({ row }: { row: Partition }) {
  if (row.leader === null) return <>none</>;
  return (
    <Anchor component={Link} to={`/brokers/${row.leader}`} size="sm" title={`Leader epoch ${row.leaderEpoch}`}>
      Broker {row.leader}
    </Anchor>
  );
}
