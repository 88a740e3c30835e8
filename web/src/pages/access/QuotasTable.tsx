import { ActionIcon, Button, Group, Stack } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { api } from "../../api/client";
import type { AccessWords, Quota, Quotas } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Note } from "../../components/Note";
import { notifyDone } from "../../components/notify";
import { byteRate } from "../../lib/format";
import { QuotaDialog } from "./QuotaDialog";
import { entityText, isByteRate } from "./quotaEntity";

interface One {
  entity: Quota["entity"];
  key: string;
}

export function QuotasTable({ quotas, words }: { quotas: Quotas; words: AccessWords }) {
  const [isSetting, setSetting] = useState(false);
  const [removed, setRemoved] = useState<One | null>(null);
  const client = useQueryClient();
  const columns = useMemo(() => columnsWith(setRemoved), []);

  async function remove() {
    if (removed === null) return;
    await api.put<Quotas>("/quotas", { entity: removed.entity, values: { [removed.key]: null } });
    notifyDone(`The quota of ${entityText(removed.entity)} is removed.`);
    await client.invalidateQueries({ queryKey: ["quotas"] });
  }

  return (
    <Stack>
      {quotas.problem && <Note tone="warning">{quotas.problem}</Note>}
      <DataTable
        label="Quotas"
        columns={columns}
        rows={quotas.items}
        rowKey={(row) => JSON.stringify(row.entity)}
        searchText={(row) => entityText(row.entity)}
        initial={{ sort: "entity" }}
        minWidth={520}
        tools={
          <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setSetting(true)} disabled={quotas.problem !== null && quotas.items.length === 0}>
            Set quota
          </Button>
        }
        empty={<EmptyState title="There are no quotas.">Everybody may use as much as there is.</EmptyState>}
      />
      <QuotaDialog keys={words.quotaKeys} isOpen={isSetting} onClose={() => setSetting(false)} />
      <ConfirmDialog opened={removed !== null} onClose={() => setRemoved(null)} title="Remove a quota" action="Remove quota" danger onConfirm={remove}>
        {removed && `${entityText(removed.entity)} may use as much as others allow, or as the default says: ${removed.key} is removed.`}
      </ConfirmDialog>
    </Stack>
  );
}

function columnsWith(onRemove: (one: One) => void): Column<Quota>[] {
  return [
    { key: "entity", header: "For", cell: (row) => entityText(row.entity), sortBy: (row) => entityText(row.entity) },
    {
      key: "values",
      header: "At most",
      cell: ({ entity, values }) => (
        <Stack gap={2}>
          {Object.entries(values).map(([key, value]) => (
            <Group key={key} gap="xs">
              <span className="ks-mono">{key}</span> {rateText(key, value)}
              <ActionIcon variant="subtle" color="red" aria-label={`Remove ${key} of ${entityText(entity)}`} onClick={() => onRemove({ entity, key })}>
                <IconTrash size={16} aria-hidden />
              </ActionIcon>
            </Group>
          ))}
        </Stack>
      ),
    },
  ];
}

function rateText(key: string, value: number): string {
  if (isByteRate(key)) return byteRate(value);
  return key.endsWith("_percentage") ? `${value}%` : `${value}/s`;
}
