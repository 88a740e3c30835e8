import { ActionIcon, Button, Group, Stack } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { api } from "../../api/client";
import type { AccessOptions, Quota, Quotas } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Note } from "../../components/Note";
import { notifySuccess } from "../../components/notify";
import { byteRate } from "../../lib/format";
import { QuotaDialog } from "./QuotaDialog";
import { entityText, isByteRate } from "./quotaEntity";

interface QuotaKey {
  entity: Quota["entity"];
  key: string;
}

export function QuotasTable({ quotas, options }: { quotas: Quotas; options: AccessOptions }) {
  const [isSetting, setSetting] = useState(false);
  const [quotaToRemove, setQuotaToRemove] = useState<QuotaKey | null>(null);
  const client = useQueryClient();
  const columns = useMemo(() => columnsWith(setQuotaToRemove), []);

  async function remove() {
    if (quotaToRemove === null) return;
    await api.put<Quotas>("/quotas", { entity: quotaToRemove.entity, values: { [quotaToRemove.key]: null } });
    notifySuccess(`Quota of ${entityText(quotaToRemove.entity)} removed.`);
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
        empty={<EmptyState title="There are no quotas.">Client usage is not limited.</EmptyState>}
      />
      <QuotaDialog keys={options.quotaKeys} isOpen={isSetting} onClose={() => setSetting(false)} />
      <ConfirmDialog opened={quotaToRemove !== null} onClose={() => setQuotaToRemove(null)} title="Remove a quota" action="Remove quota" danger onConfirm={remove}>
        {quotaToRemove && `${quotaToRemove.key} of ${entityText(quotaToRemove.entity)} is removed. A default quota applies instead, if there is one.`}
      </ConfirmDialog>
    </Stack>
  );
}

function columnsWith(onRemove: (quota: QuotaKey) => void): Column<Quota>[] {
  return [
    { key: "entity", header: "Entity", cell: (row) => entityText(row.entity), sortBy: (row) => entityText(row.entity) },
    {
      key: "values",
      header: "Limits",
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
