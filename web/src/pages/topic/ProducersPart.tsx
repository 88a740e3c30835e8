import { useQuery } from "@tanstack/react-query";

import { api, at } from "../../api/client";
import type { PartitionProducer } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Count, Time } from "../../components/figures";
import { Loaded } from "../../components/Loaded";

const REFETCH_INTERVAL_MS = 5_000;

const COLUMNS: Column<PartitionProducer>[] = [
  { key: "partition", header: "Partition", align: "right", cell: (row) => row.partition, sortBy: (row) => row.partition },
  { key: "producer", header: "Producer id", align: "right", cell: (row) => row.producerId, sortBy: (row) => row.producerId },
  { key: "epoch", header: "Epoch", align: "right", cell: (row) => row.producerEpoch, sortBy: (row) => row.producerEpoch },
  { key: "sequence", header: "Last sequence", align: "right", cell: (row) => <Count value={row.lastSequence} /> },
  { key: "written", header: "Last written", cell: (row) => <Time ms={row.lastTimestampMs} />, sortBy: (row) => row.lastTimestampMs },
  { key: "transaction", header: "Open transaction from", align: "right", cell: (row) => <Count value={row.transactionStartOffset} />, sortBy: (row) => row.transactionStartOffset },
];

export function ProducersPart({ name }: { name: string }) {
  const query = useQuery({
    queryKey: ["topic", name, "producers"],
    queryFn: ({ signal }) => api.get<PartitionProducer[]>(at`/topics/${name}/producers`, { signal }),
    refetchInterval: REFETCH_INTERVAL_MS,
  });
  return (
    <Loaded query={query}>
      {(producers) => (
        <DataTable
          label="Producers"
          columns={COLUMNS}
          rows={producers}
          rowKey={(row) => `${row.partition} ${row.producerId}`}
          searchText={(row) => `${row.partition} ${row.producerId}`}
          initial={{ sort: "partition" }}
          empty={<EmptyState title="No idempotent or transactional producers for this topic.">Brokers remember such producers for some time after their last write.</EmptyState>}
        />
      )}
    </Loaded>
  );
}
