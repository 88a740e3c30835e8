import { List, Text } from "@mantine/core";

import { api } from "../../api/client";
import type { Rebalanced } from "../../api/contract";
import { plural } from "../../lib/format";
import { ActionDialog } from "./ActionDialog";

const MOST_SHOWN = 50;
const TIME_LIMIT_MS = 660_000;

export function RebalanceDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <ActionDialog<Rebalanced>
      opened={opened}
      onClose={onClose}
      title="Rebalance the brokers"
      verb="Rebalance"
      act={() => api.post("/rebalance", undefined, { timeLimitMs: TIME_LIMIT_MS })}
      result={(rebalanced) => <Result {...rebalanced} />}
    >
      <Text size="sm">
        Partitions move from brokers with more than their share to those with less. No record is copied; clients of a partition that moves are sent to its new broker, which takes a moment.
      </Text>
    </ActionDialog>
  );
}

function Result({ moves }: Rebalanced) {
  if (moves.length === 0) return <Text size="sm">Nothing had to move: every broker has its share.</Text>;
  const done = moves.filter((move) => move.done).length;
  return (
    <>
      <Text size="sm">
        {plural(done, "partition")} moved{done < moves.length && `, ${moves.length - done} still on the way`}.
      </Text>
      <List size="sm" mt="xs">
        {moves.slice(0, MOST_SHOWN).map(({ topic, partition, source, target, done }) => (
          <List.Item key={`${topic} ${partition}`}>
            {topic} {partition}: from broker {source} to broker {target}
            {!done && " (not yet)"}
          </List.Item>
        ))}
      </List>
    </>
  );
}
