import { Button, NativeSelect, Text } from "@mantine/core";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useSearchParams } from "react-router";

import { api, at } from "../../api/client";
import type { AbortTransaction, Transaction, TransactionPage } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Loaded } from "../../components/Loaded";
import { notifySuccess } from "../../components/notify";
import { StateBadge } from "../../components/StateBadge";
import { useTableView } from "../../components/tableView";
import { duration, exactTime, plural, UNKNOWN } from "../../lib/format";

const REFETCH_INTERVAL_MS = 5_000;
const STATES = ["Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Empty"];

export function TransactionsTable() {
  const [view, setView] = useTableView();
  const [params, setParams] = useSearchParams();
  const [aborted, setAborted] = useState<string | null>(null);
  const client = useQueryClient();
  const columns = useMemo(() => columnsWith(setAborted), []);
  const state = params.get("state") ?? "";
  const query = useQuery({
    queryKey: ["transactions", view, state],
    queryFn: ({ signal }) => api.get<TransactionPage>("/transactions", { query: { search: view.search, state, page: view.page, size: view.size }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: REFETCH_INTERVAL_MS,
  });

  function choose(chosen: string) {
    setParams((before) => {
      const after = new URLSearchParams(before);
      if (chosen) after.set("state", chosen);
      else after.delete("state");
      after.delete("page");
      return after;
    });
  }

  async function abort(confirm: string) {
    await api.post(at`/transactions/${aborted ?? ""}/abort`, { confirm } satisfies AbortTransaction);
    notifySuccess(`Transaction of ${aborted} aborted.`);
    await client.invalidateQueries({ queryKey: ["transactions"] });
  }

  return (
    <>
      <Loaded query={query}>
        {(page) => (
          <DataTable
            label="Transactions"
            columns={columns}
            rows={page.items}
            rowKey={(row) => row.transactionalId}
            searchText={(row) => row.transactionalId}
            remote={{ total: page.total, view, onView: setView }}
            minWidth={880}
            tools={
              <NativeSelect
                aria-label="State"
                data={[{ value: "", label: "All states" }, ...STATES]}
                value={state}
                onChange={(event) => choose(event.currentTarget.value)}
              />
            }
            empty={
              state ? (
                <EmptyState title={`No transactions in state ${state}.`} />
              ) : (
                <EmptyState title="There are no transactional ids yet.">A transactional id appears when a producer with a transactional.id starts.</EmptyState>
              )
            }
          />
        )}
      </Loaded>
      <ConfirmDialog
        opened={aborted !== null}
        onClose={() => setAborted(null)}
        title="Abort a transaction"
        action="Abort transaction"
        typed={aborted ?? ""}
        danger
        onConfirm={abort}
      >
        The records of the open transaction are discarded, and its producer is fenced: it has to be restarted. This cannot be undone.
      </ConfirmDialog>
    </>
  );
}

function columnsWith(onAbort: (id: string) => void): Column<Transaction>[] {
  return [
    {
      key: "id",
      header: "Transactional id",
      cell: (row) => (
        <Text size="sm" span style={{ overflowWrap: "anywhere" }}>
          {row.transactionalId}
        </Text>
      ),
    },
    { key: "state", header: "State", cell: (row) => <State transaction={row} /> },
    { key: "age", header: "Open for", align: "right", cell: (row) => <Age transaction={row} /> },
    { key: "timeout", header: "Timeout", align: "right", cell: (row) => duration(row.timeoutMs) },
    { key: "producer", header: "Producer", align: "right", cell: (row) => <span title={`Producer id ${row.producerId}, epoch ${row.producerEpoch}`}>{row.producerId}</span> },
    { key: "coordinator", header: "Coordinator", align: "right", cell: (row) => row.coordinator },
    { key: "partitions", header: "Partitions", cell: (row) => <Partitions transaction={row} /> },
    {
      key: "abort",
      header: "Abort",
      isHeaderHidden: true,
      align: "right",
      cell: (row) =>
        row.startedMs !== null && (
          <Button variant="subtle" color="var(--ks-bad)" size="compact-sm" aria-label={`Abort ${row.transactionalId}`} onClick={() => onAbort(row.transactionalId)}>
            Abort
          </Button>
        ),
    },
  ];
}

/** Coordinators abort a transaction soon after its timeout. */
function State({ transaction }: { transaction: Transaction }) {
  const { startedMs, timeoutMs, state } = transaction;
  const isOverdue = startedMs !== null && Date.now() - startedMs > 2 * timeoutMs;
  return isOverdue ? <StateBadge state={`${state}, overdue`} tone="bad" title="Open for more than twice its timeout." /> : <StateBadge state={state} />;
}

function Age({ transaction: { startedMs } }: { transaction: Transaction }) {
  if (startedMs === null) return <span title="No transaction is open.">{UNKNOWN}</span>;
  return <span title={`Since ${exactTime(startedMs)}`}>{duration(Math.max(0, Date.now() - startedMs))}</span>;
}

function Partitions({ transaction: { topics } }: { transaction: Transaction }) {
  const count = topics.reduce((sum, { partitions }) => sum + partitions.length, 0);
  if (count === 0) return <span title="No partitions are part of it.">{UNKNOWN}</span>;
  const names = topics.map(({ topic, partitions }) => `${topic} ${partitions.join(", ")}`).join("; ");
  return <span title={names}>{topics.length === 1 ? names : `${plural(count, "partition")} of ${plural(topics.length, "topic")}`}</span>;
}
