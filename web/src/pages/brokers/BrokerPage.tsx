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
      badge={broker && <StateBadge state={broker.state} />}
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
      <TimeChart title="Throughput" series={throughput} unit="bytes/s" names={{ produce: "Produced", fetch: "Fetched" }} />
      <Panel title="Partitions led by this broker">
        {partitionTotal > partitions.length && (
          <Text size="sm" c="dimmed" mb="sm">
            Showing {count(partitions.length)} of {count(partitionTotal)} partitions; the topic pages show all.
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
          empty={<EmptyState title="This broker leads no partitions." />}
        />
      </Panel>
    </>
  );
}

function BrokerFacts({ broker }: { broker: Broker }) {
  return (
    <Panel title="Details">
      <Facts
        facts={[
          { label: "Client address", value: <span className="ks-mono">{broker.address ?? "–"}</span> },
          { label: "Control address", value: <span className="ks-mono">{broker.control ?? "–"}</span> },
          { label: "Rack", value: broker.rack ?? "–" },
          { label: "Role", value: broker.isController ? "controller" : "broker" },
          { label: "Version", value: broker.version },
          { label: "Broker epoch", value: broker.epoch },
          { label: "Uptime", value: duration(broker.uptimeMs) },
          { label: "Last seen", value: <Time ms={broker.seenAtMs} /> },
          { label: "Object store", value: <StateBadge state={broker.storeHealth} /> },
          { label: "Connections", value: <Count value={broker.connections} /> },
          { label: "Produced", value: <ByteRate value={broker.produceBytesPerSecond} /> },
          { label: "Fetched", value: <ByteRate value={broker.fetchBytesPerSecond} /> },
          { label: "Partitions", value: <Count value={broker.partitionCount} /> },
          { label: "Group shards", value: <Count value={broker.shardCount} /> },
          { label: "Transfers", value: <Count value={broker.movingCount} /> },
        ]}
      />
    </Panel>
  );
}
