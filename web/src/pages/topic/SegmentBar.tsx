/** A partition along its offsets: what is in segments and what is in the WAL only; the taller, the larger. */

import { Box, Group, Text, Tooltip } from "@mantine/core";

import { bytes, count } from "../../lib/format";
import type { Block } from "./blocks";

const COLOURS: Record<Block["kind"], string> = {
  older: "var(--mantine-color-gray-5)",
  segment: "var(--mantine-primary-color-filled)",
  wal: "var(--mantine-color-orange-6)",
};

const NAMES: Record<Block["kind"], string> = {
  older: "Older segments",
  segment: "Segment",
  wal: "WAL, not yet in a segment",
};

const HEIGHT = 56;
/** In per cent: even the smallest block is seen. */
const LOWEST = 15;

export function SegmentBar({ blocks }: { blocks: Block[] }) {
  const first = blocks[0];
  const last = blocks[blocks.length - 1];
  if (!first || !last) return null;
  const largest = Math.max(1, ...blocks.map((block) => block.sizeBytes ?? 0));
  return (
    <Box>
      <Box
        component="ul"
        aria-label="Where the records are, from the oldest to the newest"
        style={{ display: "flex", alignItems: "flex-end", gap: 2, height: HEIGHT, margin: 0, padding: 0, listStyle: "none" }}
      >
        {blocks.map((block) => (
          <Tooltip key={block.fromOffset} label={describe(block)} events={{ hover: true, focus: true, touch: true }}>
            <Box
              component="li"
              tabIndex={0}
              aria-label={describe(block)}
              style={{
                width: `${block.width}%`,
                height: `${tallness(block, largest)}%`,
                background: COLOURS[block.kind],
                borderRadius: 3,
                minWidth: 3,
              }}
            />
          </Tooltip>
        ))}
      </Box>
      <Group justify="space-between" mt={4} aria-hidden>
        <Text size="xs" c="dimmed">
          offset {count(first.fromOffset)}
        </Text>
        <Group gap="md">
          {Object.entries(NAMES)
            .filter(([kind]) => blocks.some((block) => block.kind === kind))
            .map(([kind, name]) => (
              <Group key={kind} gap={6}>
                <Box w={10} h={10} style={{ background: COLOURS[kind as Block["kind"]], borderRadius: 2 }} />
                <Text size="xs" c="dimmed">
                  {name}
                </Text>
              </Group>
            ))}
        </Group>
        <Text size="xs" c="dimmed">
          {count(last.toOffset)}
        </Text>
      </Group>
    </Box>
  );
}

/** What has no known size stands as tall as the largest. */
function tallness(block: Block, largest: number): number {
  return block.sizeBytes === null ? 100 : Math.max(LOWEST, (100 * block.sizeBytes) / largest);
}

function describe(block: Block): string {
  const offsets = `offsets ${count(block.fromOffset)} to ${count(block.toOffset)}`;
  return block.sizeBytes === null ? `${NAMES[block.kind]}: ${offsets}` : `${NAMES[block.kind]}: ${offsets}, ${bytes(block.sizeBytes)}`;
}
