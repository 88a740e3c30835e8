import { List, Text } from "@mantine/core";

import type { PartitionName } from "../../api/contract";
import { plural } from "../../lib/format";

const SHOWN_COUNT_MAX = 50;

/** Partitions grouped by topic, one line per topic. */
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
        {topics.slice(0, SHOWN_COUNT_MAX).map(([topic, numbers]) => (
          <List.Item key={topic}>
            {topic}: {numbers.sort((a, b) => a - b).join(", ")}
          </List.Item>
        ))}
      </List>
      {topics.length > SHOWN_COUNT_MAX && (
        <Text size="sm" c="dimmed">
          and partitions of {plural(topics.length - SHOWN_COUNT_MAX, "more topic")}
        </Text>
      )}
    </div>
  );
}
