/** A full key or value, with its format and decoding error. */

import { Badge, Code, Group, Stack, Text } from "@mantine/core";

import type { Payload } from "../../api/contract";
import { Note } from "../../components/Note";
import { bytes } from "../../lib/format";
import { CopyText } from "./CopyText";

interface Props {
  title: string;
  payload: Payload | null;
  /** Shown if the payload is null. */
  absent: string;
}

export function PayloadView({ title, payload, absent }: Props) {
  return (
    <Stack gap={6} component="section" aria-label={title}>
      <Group gap="xs">
        <Text fw={600} size="sm">
          {title}
        </Text>
        {payload && (
          <>
            <Badge variant="default" tt="none" fw={500}>
              {payload.format}
              {payload.schemaId !== null && `, schema ${payload.schemaId}`}
            </Badge>
            <Text size="xs" c="dimmed">
              {bytes(payload.sizeBytes)}
            </Text>
            <CopyText label={`Copy ${title.toLowerCase()}`} text={() => payload.text} />
          </>
        )}
      </Group>
      {payload === null ? (
        <Text size="sm" c="dimmed" fs="italic">
          {absent}
        </Text>
      ) : (
        <>
          {payload.problem && <Note tone="warning">{payload.problem}</Note>}
          <Code
            block
            tabIndex={0}
            aria-label={`Full ${title.toLowerCase()}`}
            bg="var(--mantine-color-body)"
            bd="1px solid var(--mantine-color-default-border)"
            style={{ maxHeight: 420, overflow: "auto", whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}
          >
            {payload.text}
          </Code>
          {payload.isTruncated && (
            <Text size="xs" c="dimmed">
              Truncated: only the beginning is shown.
            </Text>
          )}
        </>
      )}
    </Stack>
  );
}
