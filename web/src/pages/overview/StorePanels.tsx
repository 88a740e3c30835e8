import { Alert, Anchor, Stack } from "@mantine/core";
import { Link } from "react-router";

import type { Metadata, Store } from "../../api/contract";
import { type Fact, Facts } from "../../components/Facts";
import { Panel } from "../../components/Panel";
import { StateBadge } from "../../components/StateBadge";
import { Bytes } from "../../components/figures";
import { latency, percent, rate } from "../../lib/format";

const TWO_COLUMNS = { base: 2 };

export function StorePanel({ store }: { store: Store }) {
  const latencies: Fact[] = Object.entries(store.p99Seconds).map(([operation, seconds]) => ({ label: `${operation} p99 latency`, value: latency(seconds) }));
  return (
    <Panel title="Object store" actions={<StateBadge state={store.state} />}>
      <Stack gap="sm">
        <span className="ks-mono" style={{ overflowWrap: "anywhere" }}>
          {store.place}
        </span>
        <Facts
          cols={TWO_COLUMNS}
          facts={[{ label: "Requests", value: rate(store.operationsPerSecond) }, { label: "Error rate", value: percent(store.errorRate) }, ...latencies]}
        />
      </Stack>
    </Panel>
  );
}

export function MetadataPanel({ metadata }: { metadata: Metadata }) {
  const isEtcd = metadata.kind === "etcd";
  return (
    <Panel title="Metadata" actions={<StateBadge state={metadata.state} />}>
      <Stack gap="sm">
        <Facts
          cols={TWO_COLUMNS}
          facts={[
            { label: "Store", value: isEtcd ? "etcd" : "local file" },
            ...(isEtcd ? [{ label: "Members ready", value: `${metadata.readyCount} of ${metadata.memberCount}` }] : []),
            { label: "Size", value: <Bytes value={metadata.databaseBytes} /> },
          ]}
        />
        {metadata.problem && (
          <Alert color="orange" variant="outline">
            {metadata.problem}
          </Alert>
        )}
        <Anchor component={Link} to="/etcd" size="sm">
          {isEtcd ? "Members and snapshots" : "Metadata details"}
        </Anchor>
      </Stack>
    </Panel>
  );
}
