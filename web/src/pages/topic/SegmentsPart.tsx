/** The segments of one partition as they lie in the bucket, and what is in the WAL only. */

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
import { blocksOf } from "./blocks";

const LOOK_MS = 10_000;
/** How many segments the bar is drawn from. */
const BAR_SIZE = 50;

const COLUMNS: Column<Segment>[] = [
  { key: "created", header: "Written", cell: (row) => <Time ms={row.createdAtMs} /> },
  { key: "base", header: "First offset", align: "right", cell: (row) => <span className="ks-mono">{count(row.baseOffset)}</span> },
  { key: "last", header: "Last offset", align: "right", cell: (row) => <span className="ks-mono">{count(row.lastOffset)}</span> },
  { key: "size", header: "Size", align: "right", cell: (row) => <Bytes value={row.sizeBytes} /> },
  { key: "index", header: "Index", cell: (row) => (row.hasIndex ? "yes" : "missing: it is rebuilt when needed") },
  { key: "key", header: "Object", cell: (row) => <Text size="xs" className="ks-mono" style={{ overflowWrap: "anywhere" }}>{row.key}</Text> },
];

export function SegmentsPart({ detail }: { detail: TopicDetail }) {
  const { name } = detail.topic;
  const [view, setView] = useTableView();
  const [params, setParams] = useSearchParams();
  const asked = Number(params.get("partition") ?? 0);
  const partition = detail.partitions.find((each) => each.partition === asked) ?? detail.partitions[0];
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
          <Panel title={`Where the records of partition ${number} are`}>
            <Whereabouts page={page} startOffset={partition?.startOffset ?? 0} />
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
            empty={<EmptyState title="There are no segments yet.">Records become a segment after some time or size, or when the topic is flushed.</EmptyState>}
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
    refetchInterval: LOOK_MS,
  });
}

function Whereabouts({ page, startOffset }: { page: SegmentPage; startOffset: number }) {
  const blocks = blocksOf(page.items, page.wal, startOffset);
  if (blocks.length === 0) return <EmptyState title="The partition is empty." />;
  return (
    <Stack>
      <SegmentBar blocks={blocks} />
      <Facts
        facts={[
          { label: "Segments", value: <Count value={page.total} /> },
          { label: "Size of all segments", value: <Bytes value={page.sizeBytes} /> },
          { label: "In the WAL only", value: page.wal ? plural(page.wal.recordCount, "record") : "nothing" },
          { label: "WAL objects", value: <WalObjects wal={page.wal} /> },
        ]}
      />
    </Stack>
  );
}

function WalObjects({ wal }: { wal: WalTail | null }) {
  if (wal === null) return <>none</>;
  if (wal.objectCount === null) return <>not known</>;
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
