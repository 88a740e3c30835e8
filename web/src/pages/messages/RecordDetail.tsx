/** The full record, shown in an expanded table row. */

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
  /** URL of this record. */
  link: string;
  loadFull: (message: Message) => Promise<Message>;
}

function timeOf({ timestampMs, timestampType }: Message): string {
  if (timestampType === "none") return "no timestamp";
  const type = timestampType === "create" ? "CreateTime" : "LogAppendTime";
  return `${exactTime(timestampMs)} (${relativeTime(timestampMs)}, ${type})`;
}

export function RecordDetail({ message: listed, link, loadFull }: Props) {
  const loading = useMutation({ mutationFn: () => loadFull(listed) });
  const message = loading.data ?? listed;
  const hasTruncated = [message.key, message.value].some((payload) => payload?.isTruncated);
  return (
    <Stack gap="md" p="xs" className={classes.detail}>
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          Partition {message.partition}, offset {message.offset}, {bytes(message.sizeBytes)}, {timeOf(message)}
        </Text>
        <Group gap="xs">
          {hasTruncated && !loading.data && (
            <Button size="compact-xs" variant="default" loading={loading.isPending} onClick={() => loading.mutate()}>
              Load full record
            </Button>
          )}
          <CopyText label="Copy link" text={() => link} />
          <CopyText label="Copy record as JSON" text={() => JSON.stringify(message, null, 2)} />
        </Group>
      </Group>
      {loading.error && <ErrorState error={loading.error} />}
      <PayloadView title="Key" payload={message.key} absent="Null key." />
      <PayloadView title="Value" payload={message.value} absent="Null value (tombstone): deletes the key in a compacted topic." />
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
                {header.value === null ? <em>null</em> : header.value.text}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Stack>
  );
}
