/** The segments of one partition, and its records in the WAL. */

import { NativeSelect, Stack, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";

import { api, at } from "../../api/client";
import type { Segment, SegmentPage, TopicDetail, WalTail } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Facts } from "../../components/Facts";
import { Bytes, Count, Time } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { Panel } from "../../components/Panel";
import { useTableView } from "../../components/tableView";
import { count, plural } from "../../lib/format";
import { SegmentBar } from "./SegmentBar";
import { sectionsOf } from "./barSections";

const REFETCH_INTERVAL_MS = 10_000;
/** Number of segments fetched for the bar. */
const BAR_SIZE = 50;

const COLUMNS: Column<Segment>[] = [
  { key: "created", header: "Created", cell: (row) => <Time ms={row.createdAtMs} /> },
  { key: "base", header: "First offset", align: "right", cell: (row) => <span className="ks-mono">{count(row.baseOffset)}</span> },
  { key: "last", header: "Last offset", align: "right", cell: (row) => <span className="ks-mono">{count(row.lastOffset)}</span> },
  { key: "size", header: "Size", align: "right", cell: (row) => <Bytes value={row.sizeBytes} /> },
  { key: "index", header: "Index", cell: (row) => (row.hasIndex ? "yes" : "missing (rebuilt when needed)") },
  { key: "key", header: "Object", cell: (row) => <Text size="xs" className="ks-mono" style={{ overflowWrap: "anywhere" }}>{row.key}</Text> },
];

export function SegmentsPart({ detail }: { detail: TopicDetail }) {
  const { name } = detail.topic;
  const [view, setView] = useTableView();
  const [params, setParams] = useSearchParams();
  const requested = Number(params.get("partition") ?? 0);
  const partition = detail.partitions.find((each) => each.partition === requested) ?? detail.partitions[0];
  const number = partition?.partition ?? 0;
  const segments = useSegments(name, number, view.page, view.size);
  const newest = useSegments(name, number, 1, BAR_SIZE);

  function choose(chosen: string) {
    setParams((before) => {
      const after = new URLSearchParams(before);
      after.set("partition", chosen);
      after.delete("page");
      return after;
    });
  }

  return (
    <>
      <NativeSelect
        label="Partition"
        data={detail.partitions.map((each) => String(each.partition))}
        value={String(number)}
        onChange={(event) => choose(event.currentTarget.value)}
        w={140}
      />
      <Loaded query={newest}>
        {(page) => (
          <Panel title={`Storage of partition ${number}`}>
            <StorageSummary page={page} startOffset={partition?.startOffset ?? 0} />
          </Panel>
        )}
      </Loaded>
      <Loaded query={segments}>
        {(page) => (
          <DataTable
            label="Segments"
            columns={COLUMNS}
            rows={page.items}
            rowKey={(row) => row.key}
            remote={{ total: page.total, view, onView: setView }}
            minWidth={820}
            empty={<EmptyState title="There are no segments yet.">Records are written to a segment at a size or time limit, or when the topic is flushed.</EmptyState>}
          />
        )}
      </Loaded>
    </>
  );
}

function useSegments(name: string, partition: number, page: number, size: number) {
  return useQuery({
    queryKey: ["topic", name, "segments", partition, page, size],
    queryFn: ({ signal }) => api.get<SegmentPage>(at`/topics/${name}/segments`, { query: { partition, page, size }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: REFETCH_INTERVAL_MS,
  });
}

function StorageSummary({ page, startOffset }: { page: SegmentPage; startOffset: number }) {
  const sections = sectionsOf(page.items, page.wal, startOffset);
  if (sections.length === 0) return <EmptyState title="The partition is empty." />;
  return (
    <Stack>
      <SegmentBar sections={sections} />
      <Facts
        facts={[
          { label: "Segments", value: <Count value={page.total} /> },
          { label: "Total segment size", value: <Bytes value={page.sizeBytes} /> },
          { label: "Only in WAL", value: page.wal ? plural(page.wal.recordCount, "record") : "none" },
          { label: "WAL objects", value: <WalObjects wal={page.wal} /> },
        ]}
      />
    </Stack>
  );
}

function WalObjects({ wal }: { wal: WalTail | null }) {
  if (wal === null) return <>none</>;
  if (wal.objectCount === null) return <>unknown</>;
  return (
    <>
      <Count value={wal.objectCount} />
      {wal.sizeBytes !== null && (
        <>
          {" "}
          (<Bytes value={wal.sizeBytes} />)
        </>
      )}
    </>
  );
}
