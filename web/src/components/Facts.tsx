import { SimpleGrid, Text } from "@mantine/core";
import type { ReactNode } from "react";

export interface Fact {
  label: string;
  value: ReactNode;
}

/** A grid of labels and values. */
export function Facts({ facts, cols = { base: 2, sm: 3, lg: 4 } }: { facts: Fact[]; cols?: Record<string, number> }) {
  return (
    <SimpleGrid component="dl" cols={cols} spacing="md" m={0}>
      {facts.map(({ label, value }) => (
        <div key={label} style={{ minWidth: 0 }}>
          <Text component="dt" size="xs" c="dimmed">
            {label}
          </Text>
          <Text component="dd" m={0} fw={500} style={{ overflowWrap: "anywhere" }}>
            {value}
          </Text>
        </div>
      ))}
    </SimpleGrid>
  );
}
