/** Browses the records of a topic and produces new ones. The query is in the URL. */

import { Button, Center, Group, Loader, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPencilPlus, IconRefresh } from "@tabler/icons-react";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useSearchParams } from "react-router";

import { api, at } from "../../api/client";
import type { Browsed, Message } from "../../api/contract";
import { EmptyState } from "../../components/EmptyState";
import { ErrorState } from "../../components/ErrorState";
import { Note } from "../../components/Note";
import { bytes, plural } from "../../lib/format";
import { Filters } from "./Filters";
import { ProduceDialog } from "./ProduceDialog";
import { isFiltered, type MessageQuery, queryOfRecord, readQuery, toBrowse, writeQuery } from "./query";
import { recordId, RecordTable } from "./RecordTable";
import { useSchemas } from "./savedSchemas";

const NO_PAGES: Browsed[] = [];

interface Props {
  topic: string;
  partitionCount: number;
}

export function MessageBrowser({ topic, partitionCount }: Props) {
  const [params, setParams] = useSearchParams();
  const encoded = params.toString();
  const query = useMemo(() => readQuery(new URLSearchParams(encoded)), [encoded]);
  const [schemas, setSchemas] = useSchemas(topic);
  const [isProducing, { open: openDialog, close: closeDialog }] = useDisclosure(false);
  const browsing = useInfiniteQuery({
    queryKey: ["messages", topic, query, schemas],
    queryFn: ({ pageParam, signal }) =>
      api.post<Browsed>(at`/topics/${topic}/messages/browse`, toBrowse(query, pageParam, schemas), { signal }),
    initialPageParam: {} as Record<string, number>,
    getNextPageParam: (last) => (last.isComplete || Object.keys(last.next).length === 0 ? undefined : last.next),
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });
  const pages = browsing.data?.pages ?? NO_PAGES;
  const messages = useMemo(() => withoutDuplicates(pages), [pages]);

  function linkTo(message: Message): string {
    return `${window.location.origin}${window.location.pathname}?${writeQuery(queryOfRecord(message, query))}`;
  }

  async function loadFull(message: Message): Promise<Message> {
    const single = { ...queryOfRecord(message, query), limit: 1 };
    const { messages: found } = await api.post<Browsed>(at`/topics/${topic}/messages/browse`, toBrowse(single, {}, schemas));
    return found.find((each) => recordId(each) === recordId(message)) ?? message;
  }

  return (
    <Stack>
      <Filters
        query={query}
        schemas={schemas}
        partitionCount={partitionCount}
        isBusy={browsing.isFetching}
        onSubmit={(changed, changedSchemas) => {
          setSchemas(changedSchemas);
          const after = writeQuery(changed);
          if (after.toString() === writeQuery(query).toString()) void browsing.refetch();
          else setParams(after);
        }}
      />
      <Group justify="space-between">
        <Text size="sm" c="dimmed" role="status">
          {browsing.isFetching ? "Loading…" : summary(pages, query)}
        </Text>
        <Group gap="xs">
          <Button
            variant="default"
            size="xs"
            leftSection={<IconRefresh size={14} aria-hidden />}
            onClick={() => void browsing.refetch()}
          >
            Refresh
          </Button>
          <Button size="xs" leftSection={<IconPencilPlus size={14} aria-hidden />} onClick={openDialog}>
            Produce record
          </Button>
        </Group>
      </Group>
      {[...new Set(pages.flatMap((page) => page.problems))].map((problem) => (
        <Note key={problem} tone="warning">
          {problem}
        </Note>
      ))}
      {browsing.error && <ErrorState error={browsing.error} onRetry={() => void browsing.refetch()} />}
      {browsing.isPending && (
        <Center p="xl">
          <Loader aria-label="Loading records" />
        </Center>
      )}
      {messages.length > 0 && (
        <RecordTable messages={messages} opened={linkedRecord(query, messages)} linkTo={linkTo} loadFull={loadFull} />
      )}
      {browsing.isSuccess && messages.length === 0 && !browsing.hasNextPage && (
        <EmptyState title={isFiltered(query) ? "No records match." : "No records found."}>
          {isFiltered(query)
            ? "All records from the selected start were searched. Remove a filter, or start earlier."
            : "Produce a record, or start earlier."}
        </EmptyState>
      )}
      {browsing.hasNextPage && (
        <Center>
          <Button variant="default" loading={browsing.isFetchingNextPage} onClick={() => void browsing.fetchNextPage()}>
            {messages.length === 0 ? "No match so far: search more records" : "Load more"}
          </Button>
        </Center>
      )}
      <ProduceDialog
        topic={topic}
        partitionCount={partitionCount}
        isOpen={isProducing}
        onClose={closeDialog}
        onProduced={() => void browsing.refetch()}
      />
    </Stack>
  );
}

/** New records shift the pages, so that a record may be returned twice. */
function withoutDuplicates(pages: Browsed[]): Message[] {
  const messages = pages.flatMap((page) => page.messages);
  return [...new Map(messages.map((message) => [recordId(message), message])).values()];
}

/** The record that a link refers to; it is expanded. */
function linkedRecord(query: MessageQuery, messages: Message[]): string | null {
  const first = messages[0];
  const isLink = query.start === "offset" && query.partitions.length === 1 && !isFiltered(query);
  return isLink && first && first.offset === query.offset ? recordId(first) : null;
}

function summary(pages: Browsed[], query: MessageQuery): string {
  const shown = pages.reduce((sum, page) => sum + page.messages.length, 0);
  const scanned = pages.reduce((sum, page) => sum + page.scannedRecords, 0);
  const size = pages.reduce((sum, page) => sum + page.scannedBytes, 0);
  if (pages.length === 0) return "";
  const found = isFiltered(query) ? ` found in ${plural(scanned, "scanned record")} (${bytes(size)})` : "";
  return `${plural(shown, "record")}${found}, ${query.isolation}`;
}
