/** Finding records of a topic, and writing one. The address of the page is the query. */

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
import { nameOf, RecordTable } from "./RecordTable";
import { useSchemas } from "./schemaMemory";

const NO_PAGES: Browsed[] = [];

interface Props {
  topic: string;
  partitionCount: number;
}

export function MessageBrowser({ topic, partitionCount }: Props) {
  const [params, setParams] = useSearchParams();
  const written = params.toString();
  const query = useMemo(() => readQuery(new URLSearchParams(written)), [written]);
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
  const messages = useMemo(() => withoutRepeats(pages), [pages]);

  function linkTo(message: Message): string {
    return `${window.location.origin}${window.location.pathname}?${writeQuery(queryOfRecord(message, query))}`;
  }

  async function wholeOf(message: Message): Promise<Message> {
    const one = { ...queryOfRecord(message, query), limit: 1 };
    const { messages: found } = await api.post<Browsed>(at`/topics/${topic}/messages/browse`, toBrowse(one, {}, schemas));
    return found.find((each) => nameOf(each) === nameOf(message)) ?? message;
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
          {browsing.isFetching ? "Reading…" : summary(pages, query)}
        </Text>
        <Group gap="xs">
          <Button
            variant="default"
            size="xs"
            leftSection={<IconRefresh size={14} aria-hidden />}
            onClick={() => void browsing.refetch()}
          >
            Read again
          </Button>
          <Button size="xs" leftSection={<IconPencilPlus size={14} aria-hidden />} onClick={openDialog}>
            Write a record
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
          <Loader aria-label="Reading records" />
        </Center>
      )}
      {messages.length > 0 && (
        <RecordTable messages={messages} opened={openedBy(query, messages)} linkTo={linkTo} wholeOf={wholeOf} />
      )}
      {browsing.isSuccess && messages.length === 0 && !browsing.hasNextPage && (
        <EmptyState title={isFiltered(query) ? "No record fits." : "There are no records here."}>
          {isFiltered(query)
            ? "Everything from the chosen start on was looked at. Take a filter away, or begin earlier."
            : "Write one, or begin earlier."}
        </EmptyState>
      )}
      {browsing.hasNextPage && (
        <Center>
          <Button variant="default" loading={browsing.isFetchingNextPage} onClick={() => void browsing.fetchNextPage()}>
            {messages.length === 0 ? "Nothing found so far: look further" : "Load more"}
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

/** What was written meanwhile moves the newest on, and may bring a record twice. */
function withoutRepeats(pages: Browsed[]): Message[] {
  const messages = pages.flatMap((page) => page.messages);
  return [...new Map(messages.map((message) => [nameOf(message), message])).values()];
}

/** A link to one record opens it. */
function openedBy(query: MessageQuery, messages: Message[]): string | null {
  const first = messages[0];
  const isAboutOne = query.start === "offset" && query.partitions.length === 1 && !isFiltered(query);
  return isAboutOne && first && first.offset === query.offset ? nameOf(first) : null;
}

function summary(pages: Browsed[], query: MessageQuery): string {
  const shown = pages.reduce((sum, page) => sum + page.messages.length, 0);
  const scanned = pages.reduce((sum, page) => sum + page.scannedRecords, 0);
  const size = pages.reduce((sum, page) => sum + page.scannedBytes, 0);
  if (pages.length === 0) return "";
  if (!isFiltered(query)) return plural(shown, "record");
  return `${plural(shown, "record")} found in ${plural(scanned, "record")} (${bytes(size)}) looked at`;
}
