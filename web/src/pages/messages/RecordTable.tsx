/** A table of records; a row expands to the full record. */

import { ActionIcon, Badge, Paper, Table, Text, VisuallyHidden } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { Fragment, useState } from "react";

import type { Message } from "../../api/contract";
import { bytes, count, exactTime, relativeTime } from "../../lib/format";
import { preview } from "./payload";
import { RecordDetail } from "./RecordDetail";

interface Props {
  messages: Message[];
  /** Id of the record that is expanded initially. */
  opened: string | null;
  linkTo: (message: Message) => string;
  /** Loads the record without truncation. */
  loadFull: (message: Message) => Promise<Message>;
}

const COLUMN_COUNT = 7;

export function recordId(message: Pick<Message, "partition" | "offset">): string {
  return `${message.partition}:${message.offset}`;
}

export function RecordTable({ messages, opened, linkTo, loadFull }: Props) {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const isOpen = (id: string) => toggled.has(id) !== (id === opened);

  function toggle(id: string) {
    setToggled((before) => {
      const after = new Set(before);
      if (!after.delete(id)) after.add(id);
      return after;
    });
  }

  return (
    <Paper withBorder p="md">
      <Table.ScrollContainer minWidth={720}>
        <Table aria-label="Records" highlightOnHover verticalSpacing="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={44}>
                <VisuallyHidden>More</VisuallyHidden>
              </Table.Th>
              <Table.Th>Timestamp</Table.Th>
              <Table.Th ta="right">Partition</Table.Th>
              <Table.Th ta="right">Offset</Table.Th>
              <Table.Th>Key</Table.Th>
              <Table.Th>Value</Table.Th>
              <Table.Th ta="right" visibleFrom="sm">
                Size
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {messages.map((message) => {
              const id = recordId(message);
              return (
                <Fragment key={id}>
                  <Row message={message} isOpen={isOpen(id)} onToggle={() => toggle(id)} />
                  {isOpen(id) && (
                    <Table.Tr>
                      <Table.Td colSpan={COLUMN_COUNT} bg="var(--ks-page)">
                        <RecordDetail message={message} link={linkTo(message)} loadFull={loadFull} />
                      </Table.Td>
                    </Table.Tr>
                  )}
                </Fragment>
              );
            })}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Paper>
  );
}

interface RowProps {
  message: Message;
  isOpen: boolean;
  onToggle: () => void;
}

function Row({ message, isOpen, onToggle }: RowProps) {
  const Chevron = isOpen ? IconChevronDown : IconChevronRight;
  return (
    <Table.Tr onClick={onToggle} style={{ cursor: "pointer" }}>
      <Table.Td>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={`Record ${message.offset} of partition ${message.partition}`}
          aria-expanded={isOpen}
          onClick={(event) => {
            event.stopPropagation();
            onToggle();
          }}
        >
          <Chevron size={16} aria-hidden />
        </ActionIcon>
      </Table.Td>
      <Table.Td style={{ whiteSpace: "nowrap" }} title={relativeTime(message.timestampMs)}>
        {message.timestampType === "none" ? "–" : exactTime(message.timestampMs)}
      </Table.Td>
      <Table.Td ta="right">{message.partition}</Table.Td>
      <Table.Td ta="right">{count(message.offset)}</Table.Td>
      <Table.Td maw={200}>
        <Text size="sm" ff="monospace" truncate>
          {preview(message.key)}
        </Text>
      </Table.Td>
      <Table.Td maw={0} w="60%">
        {message.value === null ? (
          <Badge variant="default" tt="none" fw={500}>
            tombstone
          </Badge>
        ) : (
          <Text size="sm" ff="monospace" truncate>
            {preview(message.value)}
          </Text>
        )}
      </Table.Td>
      <Table.Td ta="right" visibleFrom="sm" style={{ whiteSpace: "nowrap" }}>
        {bytes(message.sizeBytes)}
      </Table.Td>
    </Table.Tr>
  );
}
