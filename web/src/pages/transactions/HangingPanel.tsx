import { Anchor, Button, Stack } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link } from "react-router";

import { api } from "../../api/client";
import type { AbortHanging, HangingTransaction } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { type Column, DataTable } from "../../components/DataTable";
import { Count, Time } from "../../components/figures";
import { Loaded } from "../../components/Loaded";
import { Note } from "../../components/Note";
import { notifySuccess } from "../../components/notify";
import { Panel } from "../../components/Panel";
import { StateBadge } from "../../components/StateBadge";
import { pathOf } from "../topic/TopicParts";

/** The search asks the leaders of all partitions. */
const REFETCH_INTERVAL_MS = 60_000;

const placeOf = (row: HangingTransaction) => `${row.topic}, partition ${row.partition}, offset ${row.startOffset}`;

/** Shown only if a transaction hangs, or the search failed. */
export function HangingPanel() {
  const [chosen, setChosen] = useState<HangingTransaction | null>(null);
  const client = useQueryClient();
  const columns = useMemo(() => columnsWith(setChosen), []);
  const query = useQuery({
    queryKey: ["transactions", "hanging"],
    queryFn: ({ signal }) => api.get<HangingTransaction[]>("/hanging-transactions", { signal }),
    refetchInterval: REFETCH_INTERVAL_MS,
  });

  async function abort() {
    if (chosen === null) return;
    const { topic, partition, startOffset } = chosen;
    await api.post("/hanging-transactions/abort", { topic, partition, startOffset } satisfies AbortHanging);
    notifySuccess(`Transaction in ${placeOf(chosen)} aborted.`);
    await client.invalidateQueries({ queryKey: ["transactions"] });
  }

  if (!query.isError && !query.data?.length) return null;
  return (
    <Panel title="Hanging transactions">
      <Loaded query={query}>
        {(rows) => (
          <Stack>
            <Note tone="warning">No coordinator will end these transactions. Consumers with isolation.level=read_committed cannot read past them until they are aborted.</Note>
            <DataTable label="Hanging transactions" columns={columns} rows={rows} rowKey={placeOf} minWidth={760} plain />
          </Stack>
        )}
      </Loaded>
      <ConfirmDialog opened={chosen !== null} onClose={() => setChosen(null)} title="Abort a hanging transaction" action="Abort transaction" danger onConfirm={abort}>
        {chosen && `The records of producer ${chosen.producerId} in ${placeOf(chosen)} are discarded. This cannot be undone.`}
      </ConfirmDialog>
    </Panel>
  );
}

function columnsWith(onAbort: (row: HangingTransaction) => void): Column<HangingTransaction>[] {
  return [
    {
      key: "topic",
      header: "Topic",
      cell: (row) => (
        <Anchor component={Link} to={pathOf(row.topic, "producers")} size="sm">
          {row.topic}
        </Anchor>
      ),
      sortBy: (row) => row.topic,
    },
    { key: "partition", header: "Partition", align: "right", cell: (row) => row.partition, sortBy: (row) => row.partition },
    { key: "state", header: "State", cell: () => <StateBadge state="hanging" /> },
    { key: "offset", header: "First offset", align: "right", cell: (row) => <Count value={row.startOffset} />, sortBy: (row) => row.startOffset },
    { key: "producer", header: "Producer", align: "right", cell: (row) => <span title={`Producer id ${row.producerId}, epoch ${row.producerEpoch}`}>{row.producerId}</span> },
    { key: "id", header: "Transactional id", cell: (row) => row.transactionalId ?? "unknown" },
    { key: "written", header: "Last written", cell: (row) => <Time ms={row.lastWrittenMs} />, sortBy: (row) => row.lastWrittenMs },
    {
      key: "abort",
      header: "Abort",
      isHeaderHidden: true,
      align: "right",
      cell: (row) => (
        <Button variant="subtle" color="var(--ks-bad)" size="compact-sm" aria-label={`Abort the transaction in ${placeOf(row)}`} onClick={() => onAbort(row)}>
          Abort
        </Button>
      ),
    },
  ];
}
