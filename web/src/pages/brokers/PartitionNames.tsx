import { List, Text } from "@mantine/core";

import type { PartitionName } from "../../api/contract";
import { plural } from "../../lib/format";

const MOST_SHOWN = 50;

/** Partitions by topic, in one line each. */
export function PartitionNames({ label, partitions }: { label: string; partitions: PartitionName[] }) {
  if (partitions.length === 0) return null;
  const byTopic = new Map<string, number[]>();
  for (const { topic, partition } of partitions) byTopic.set(topic, [...(byTopic.get(topic) ?? []), partition]);
  const topics = [...byTopic].sort(([a], [b]) => a.localeCompare(b));
  return (
    <div>
      <Text size="sm" fw={500}>
        {label}: {plural(partitions.length, "partition")}
      </Text>
      <List size="sm">
        {topics.slice(0, MOST_SHOWN).map(([topic, numbers]) => (
          <List.Item key={topic}>
            {topic}: {numbers.sort((a, b) => a - b).join(", ")}
          </List.Item>
        ))}
      </List>
      {topics.length > MOST_SHOWN && (
        <Text size="sm" c="dimmed">
          and those of {plural(topics.length - MOST_SHOWN, "more topic")}
        </Text>
      )}
    </div>
  );
}
