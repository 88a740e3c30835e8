import { List, Text } from "@mantine/core";

import { api } from "../../api/client";
import type { Rebalanced } from "../../api/contract";
import { plural } from "../../lib/format";
import { ActionDialog } from "./ActionDialog";

const SHOWN_COUNT_MAX = 50;
const TIMEOUT_MS = 660_000;

export function RebalanceDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <ActionDialog<Rebalanced>
      opened={opened}
      onClose={onClose}
      title="Rebalance the brokers"
      action="Rebalance"
      run={() => api.post("/rebalance", undefined, { timeoutMs: TIMEOUT_MS })}
      result={(rebalanced) => <Result {...rebalanced} />}
    >
      <Text size="sm">
        Partitions move from brokers with more than their share to brokers with less. No data is copied. Clients of a moved partition reconnect to its new leader.
      </Text>
    </ActionDialog>
  );
}

function Result({ moves }: Rebalanced) {
  if (moves.length === 0) return <Text size="sm">No partition had to move: the cluster is balanced.</Text>;
  const done = moves.filter((move) => move.done).length;
  return (
    <>
      <Text size="sm">
        {plural(done, "partition")} moved{done < moves.length && `, ${moves.length - done} pending`}.
      </Text>
      <List size="sm" mt="xs">
        {moves.slice(0, SHOWN_COUNT_MAX).map(({ topic, partition, source, target, done }) => (
          <List.Item key={`${topic} ${partition}`}>
            {topic} {partition}: from broker {source} to broker {target}
            {!done && " (pending)"}
          </List.Item>
        ))}
      </List>
    </>
  );
}
