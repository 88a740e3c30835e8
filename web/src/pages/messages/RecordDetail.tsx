/** One record in full: what a row of the table opens to. */

import { Button, Group, Stack, Table, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";

import type { Message } from "../../api/contract";
import { ErrorState } from "../../components/ErrorState";
import { bytes, exactTime, plural, relativeTime } from "../../lib/format";
import { CopyText } from "./CopyText";
import { PayloadView } from "./PayloadView";
import classes from "./RecordDetail.module.css";

interface Props {
  message: Message;
  /** The address that shows this record to somebody else. */
  link: string;
  wholeOf: (message: Message) => Promise<Message>;
}

function timeOf({ timestampMs, timestampType }: Message): string {
  if (timestampType === "none") return "without a time";
  const giver = timestampType === "create" ? "the producer" : "the broker";
  return `${exactTime(timestampMs)} (${relativeTime(timestampMs)}, given by ${giver})`;
}

export function RecordDetail({ message: listed, link, wholeOf }: Props) {
  const reading = useMutation({ mutationFn: () => wholeOf(listed) });
  const message = reading.data ?? listed;
  const isCut = [message.key, message.value].some((payload) => payload?.isTruncated);
  return (
    <Stack gap="md" p="xs" className={classes.detail}>
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          Partition {message.partition}, offset {message.offset}, {bytes(message.sizeBytes)}, {timeOf(message)}
        </Text>
        <Group gap="xs">
          {isCut && !reading.data && (
            <Button size="compact-xs" variant="default" loading={reading.isPending} onClick={() => reading.mutate()}>
              Load all of it
            </Button>
          )}
          <CopyText label="Copy link" text={() => link} />
          <CopyText label="Copy record as JSON" text={() => JSON.stringify(message, null, 2)} />
        </Group>
      </Group>
      {reading.error && <ErrorState error={reading.error} />}
      <PayloadView title="Key" payload={message.key} absent="No key." />
      <PayloadView title="Value" payload={message.value} absent="No value: a tombstone, which deletes its key from a compacted topic." />
      {message.headers.length > 0 && <Headers message={message} />}
    </Stack>
  );
}

function Headers({ message }: { message: Message }) {
  return (
    <Stack gap={6} component="section" aria-label="Headers">
      <Text fw={600} size="sm">
        {plural(message.headers.length, "header")}
      </Text>
      <Table aria-label="Headers" layout="auto" withRowBorders={false} verticalSpacing={4}>
        <Table.Tbody>
          {message.headers.map((header, index) => (
            <Table.Tr key={`${header.key}-${index}`}>
              <Table.Th scope="row" w="30%">
                {header.key}
              </Table.Th>
              <Table.Td ff="monospace" style={{ overflowWrap: "anywhere" }}>
                {header.value === null ? <em>no value</em> : header.value.text}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Stack>
  );
}
