import { Alert, Button, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useParams } from "react-router";

import { api, at } from "../../api/client";
import type { Broker, BrokerDetail, BrokerPartition } from "../../api/contract";
import { DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Facts } from "../../components/Facts";
import { Loaded } from "../../components/Loaded";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { StateBadge } from "../../components/StateBadge";
import { TimeChart } from "../../components/TimeChart";
import { ByteRate, Count, Time } from "../../components/figures";
import { count, duration } from "../../lib/format";
import { DrainDialog } from "./DrainDialog";
import { FlushDialog } from "./FlushDialog";
import { PARTITION_COLUMNS } from "./brokerColumns";

const searchText = ({ topic, partition, state }: BrokerPartition) => `${topic} ${partition} ${state}`;

export function BrokerPage() {
  const id = Number(useParams().id);
  const [dialog, setDialog] = useState<"drain" | "flush" | null>(null);
  const query = useQuery({
    queryKey: ["broker", id],
    queryFn: ({ signal }) => api.get<BrokerDetail>(at`/brokers/${id}`, { signal }),
    refetchInterval: 3_000,
  });
  const broker = query.data?.broker;
  const canAct = broker !== undefined && broker.state !== "gone" && broker.state !== "unreachable";

  return (
    <Page
      title={`Broker ${id}`}
      crumbs={[{ label: "Brokers", to: "/brokers" }]}
      mark={broker && <StateBadge state={broker.state} />}
      actions={
        canAct && (
          <>
            <Button variant="default" onClick={() => setDialog("flush")}>
              Flush
            </Button>
            <Button variant="default" onClick={() => setDialog("drain")}>
              Drain
            </Button>
          </>
        )
      }
    >
      <Loaded query={query}>{(detail) => <Detail detail={detail} />}</Loaded>
      <DrainDialog broker={id} opened={dialog === "drain"} onClose={() => setDialog(null)} />
      <FlushDialog broker={id} opened={dialog === "flush"} onClose={() => setDialog(null)} />
    </Page>
  );
}

function Detail({ detail: { broker, partitions, partitionTotal, throughput } }: { detail: BrokerDetail }) {
  return (
    <>
      {Object.entries(broker.problems).map(([subject, sentence]) => (
        <Alert key={subject} color="orange" variant="outline" title={subject}>
          {sentence}
        </Alert>
      ))}
      <BrokerFacts broker={broker} />
      <TimeChart title="Throughput" series={throughput} unit="bytes/s" names={{ produce: "Written", fetch: "Read" }} />
      <Panel title="Partitions that it leads">
        {partitionTotal > partitions.length && (
          <Text size="sm" c="dimmed" mb="sm">
            The first {count(partitions.length)} of {count(partitionTotal)}; the pages of topics show the others.
          </Text>
        )}
        <DataTable
          label="Partitions"
          plain
          minWidth={820}
          columns={PARTITION_COLUMNS}
          rows={partitions}
          rowKey={({ topic, partition }) => `${topic} ${partition}`}
          searchText={searchText}
          initial={{ sort: "topic" }}
          empty={<EmptyState title="It leads no partition." />}
        />
      </Panel>
    </>
  );
}

function BrokerFacts({ broker }: { broker: Broker }) {
  return (
    <Panel title="About it">
      <Facts
        facts={[
          { label: "Address of clients", value: <span className="ks-mono">{broker.address ?? "–"}</span> },
          { label: "Address of control", value: <span className="ks-mono">{broker.control ?? "–"}</span> },
          { label: "Rack", value: broker.rack ?? "–" },
          { label: "Role", value: broker.isController ? "controller" : "broker" },
          { label: "Version", value: broker.version },
          { label: "Epoch", value: broker.epoch },
          { label: "Up for", value: duration(broker.uptimeMs) },
          { label: "Seen", value: <Time ms={broker.seenAtMs} /> },
          { label: "Object store", value: <StateBadge state={broker.storeHealth} /> },
          { label: "Connections", value: <Count value={broker.connections} /> },
          { label: "Written", value: <ByteRate value={broker.produceBytesPerSecond} /> },
          { label: "Read", value: <ByteRate value={broker.fetchBytesPerSecond} /> },
          { label: "Partitions", value: <Count value={broker.partitionCount} /> },
          { label: "Shards of the log", value: <Count value={broker.shardCount} /> },
          { label: "Moving", value: <Count value={broker.movingCount} /> },
        ]}
      />
    </Panel>
  );
}
