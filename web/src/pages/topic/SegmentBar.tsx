/** A partition along its offsets: records in segments and in the WAL. The height of a section shows its size. */

import { Box, Group, Text, Tooltip } from "@mantine/core";

import { bytes, count } from "../../lib/format";
import type { Section } from "./barSections";

const COLOURS: Record<Section["kind"], string> = {
  older: "var(--mantine-color-gray-5)",
  segment: "var(--mantine-primary-color-filled)",
  wal: "var(--mantine-color-orange-6)",
};

const NAMES: Record<Section["kind"], string> = {
  older: "Older segments",
  segment: "Segment",
  wal: "WAL, not yet in a segment",
};

const HEIGHT = 56;
/** In percent, so that the smallest section is visible. */
const MINIMUM_HEIGHT = 15;

export function SegmentBar({ sections }: { sections: Section[] }) {
  const first = sections[0];
  const last = sections[sections.length - 1];
  if (!first || !last) return null;
  const largest = Math.max(1, ...sections.map((section) => section.sizeBytes ?? 0));
  return (
    <Box>
      <Box
        component="ul"
        aria-label="Storage of the records, oldest first"
        style={{ display: "flex", alignItems: "flex-end", gap: 2, height: HEIGHT, margin: 0, padding: 0, listStyle: "none" }}
      >
        {sections.map((section) => (
          <Tooltip key={section.fromOffset} label={describe(section)} events={{ hover: true, focus: true, touch: true }}>
            <Box
              component="li"
              tabIndex={0}
              aria-label={describe(section)}
              style={{
                width: `${section.width}%`,
                height: `${heightOf(section, largest)}%`,
                background: COLOURS[section.kind],
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
            .filter(([kind]) => sections.some((section) => section.kind === kind))
            .map(([kind, name]) => (
              <Group key={kind} gap={6}>
                <Box w={10} h={10} style={{ background: COLOURS[kind as Section["kind"]], borderRadius: 2 }} />
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

/** A section of unknown size has the full height. */
function heightOf(section: Section, largest: number): number {
  return section.sizeBytes === null ? 100 : Math.max(MINIMUM_HEIGHT, (100 * section.sizeBytes) / largest);
}

function describe(section: Section): string {
  const offsets = `offsets ${count(section.fromOffset)} to ${count(section.toOffset)}`;
  return section.sizeBytes === null ? `${NAMES[section.kind]}: ${offsets}` : `${NAMES[section.kind]}: ${offsets}, ${bytes(section.sizeBytes)}`;
}
