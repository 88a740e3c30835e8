import { Button, NumberInput, Text } from "@mantine/core";
import { IconCamera } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { api } from "../../api/client";
import type { EtcdState, Snapshot } from "../../api/contract";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Bytes } from "../../components/figures";
import { FormDialog } from "../../components/FormDialog";
import { Note } from "../../components/Note";
import { notifySuccess } from "../../components/notify";
import { Panel } from "../../components/Panel";
import { bytes, count, duration } from "../../lib/format";

/** A large database takes minutes to download and to upload. */
const SNAPSHOT_TIMEOUT_MS = 660_000;
const STALE_SECONDS = 86_400;

const COLUMNS: Column<Snapshot>[] = [
  { key: "taken", header: "Taken", cell: (row) => <span title={row.takenAt}>{duration(row.ageSeconds * 1000)} ago</span>, sortBy: (row) => row.takenAt },
  { key: "key", header: "Object", cell: (row) => <Text size="xs" className="ks-mono" style={{ overflowWrap: "anywhere" }}>{row.key}</Text> },
  { key: "version", header: "etcd", cell: (row) => row.etcdVersion ?? "–", sortBy: (row) => row.etcdVersion },
  { key: "verified", header: "Verified", cell: (row) => <span title={row.problem ?? undefined}>{row.problem ?? row.verified}</span>, sortBy: (row) => row.verified },
  { key: "revision", header: "Revision", align: "right", cell: (row) => <span className="ks-mono">{count(row.revision)}</span>, sortBy: (row) => row.revision },
  { key: "size", header: "Size", align: "right", cell: (row) => <Bytes value={row.sizeBytes} />, sortBy: (row) => row.sizeBytes },
];

export function SnapshotsTable({ state }: { state: EtcdState }) {
  const [isTaking, setTaking] = useState(false);
  const newest = state.snapshots[0];
  return (
    <Panel
      title="Snapshots"
      actions={
        <Button size="xs" leftSection={<IconCamera size={14} aria-hidden />} disabled={state.snapshotsAt === null} onClick={() => setTaking(true)}>
          Take a snapshot
        </Button>
      }
    >
      <Text size="sm" c="dimmed" mb="sm">
        {state.snapshotsAt ? `Snapshots are stored at ${state.snapshotsAt}.` : "No bucket for snapshots is configured."}
      </Text>
      {newest && newest.ageSeconds > STALE_SECONDS && (
        <Note tone="warning">The newest snapshot is {duration(newest.ageSeconds * 1000)} old.</Note>
      )}
      <DataTable
        plain
        label="Snapshots"
        columns={COLUMNS}
        rows={state.snapshots}
        rowKey={(row) => row.key}
        initial={{ sort: "taken", order: "desc", size: 20 }}
        minWidth={820}
        empty={<EmptyState title="There are no snapshots.">A snapshot is needed to restore a lost etcd cluster.</EmptyState>}
      />
      <SnapshotDialog opened={isTaking} onClose={() => setTaking(false)} />
    </Panel>
  );
}

function SnapshotDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const [retain, setRetain] = useState(0);
  const client = useQueryClient();
  const taking = useMutation({
    mutationFn: () => api.post<Snapshot>("/etcd/snapshots", { retain }, { timeoutMs: SNAPSHOT_TIMEOUT_MS }),
    onSuccess: async (snapshot) => {
      notifySuccess(`Snapshot taken: ${bytes(snapshot.sizeBytes)} at revision ${count(snapshot.revision)}.`);
      onClose();
      await client.invalidateQueries({ queryKey: ["etcd"] });
    },
  });
  return (
    <FormDialog
      title="Take a snapshot of etcd"
      action="Take snapshot"
      opened={opened}
      isBusy={taking.isPending}
      error={taking.error}
      onClose={onClose}
      onSubmit={() => taking.mutate()}
    >
      <NumberInput
        label="Snapshots to keep"
        description="Older snapshots are deleted permanently. 0 keeps all."
        min={0}
        max={10_000}
        allowDecimal={false}
        value={retain}
        onChange={(value) => setRetain(Number(value) || 0)}
      />
    </FormDialog>
  );
}
