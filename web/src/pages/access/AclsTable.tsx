import { ActionIcon, Button, Stack } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { api } from "../../api/client";
import type { AccessWords, Acl, Acls } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Note } from "../../components/Note";
import { notifyDone } from "../../components/notify";
import { StateBadge } from "../../components/StateBadge";
import { AclDialog } from "./AclDialog";

export function AclsTable({ acls, words }: { acls: Acls; words: AccessWords }) {
  const [isCreating, setCreating] = useState(false);
  const [removed, setRemoved] = useState<Acl | null>(null);
  const client = useQueryClient();
  const columns = useMemo(() => columnsWith(setRemoved), []);

  async function remove() {
    await api.delete("/acls", removed);
    notifyDone("The rule is removed.");
    await client.invalidateQueries({ queryKey: ["acls"] });
  }

  return (
    <Stack>
      {!acls.isEnabled && (
        <Note tone="warning" title="Authorization is off">
          The brokers ask nobody for permission: everybody who reaches them may do everything, and rules have no effect. {acls.problem}
        </Note>
      )}
      {acls.isEnabled && acls.problem && <Note tone="warning">{acls.problem}</Note>}
      <DataTable
        label="Rules"
        columns={columns}
        rows={acls.items}
        rowKey={(row) => JSON.stringify(row)}
        searchText={(row) => Object.values(row).join(" ")}
        initial={{ sort: "principal" }}
        minWidth={800}
        tools={
          <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setCreating(true)} disabled={acls.problem !== null && acls.items.length === 0}>
            Create rule
          </Button>
        }
        empty={<EmptyState title="There are no rules.">Where authorization is on, only super users may do anything then.</EmptyState>}
      />
      <AclDialog words={words} isOpen={isCreating} onClose={() => setCreating(false)} />
      <ConfirmDialog opened={removed !== null} onClose={() => setRemoved(null)} title="Remove a rule" action="Remove rule" danger onConfirm={remove}>
        {removed && sentenceOf(removed)} This rule ends at once, for connections that are open as well.
      </ConfirmDialog>
    </Stack>
  );
}

function sentenceOf(acl: Acl): string {
  const verb = acl.permission.toUpperCase() === "DENY" ? "may not" : "may";
  const name = acl.patternType.toUpperCase() === "PREFIXED" ? `whose names begin with ${acl.resourceName}` : acl.resourceName;
  return `${acl.principal} ${verb} ${acl.operation} ${acl.resourceType} ${name}.`;
}

function columnsWith(onRemove: (acl: Acl) => void): Column<Acl>[] {
  return [
    { key: "principal", header: "Principal", cell: (row) => row.principal, sortBy: (row) => row.principal },
    {
      key: "permission",
      header: "Permission",
      cell: (row) => <StateBadge state={row.permission.toLowerCase()} tone={row.permission.toUpperCase() === "DENY" ? "bad" : "good"} />,
      sortBy: (row) => row.permission,
    },
    { key: "operation", header: "Operation", cell: (row) => row.operation, sortBy: (row) => row.operation },
    { key: "type", header: "Resource", cell: (row) => row.resourceType, sortBy: (row) => row.resourceType },
    {
      key: "name",
      header: "Name",
      cell: (row) => <span className="ks-mono">{row.patternType.toUpperCase() === "PREFIXED" ? `${row.resourceName}…` : row.resourceName}</span>,
      sortBy: (row) => row.resourceName,
    },
    { key: "pattern", header: "Pattern", cell: (row) => row.patternType.toLowerCase(), sortBy: (row) => row.patternType },
    { key: "host", header: "Host", cell: (row) => (row.host === "*" ? "any" : row.host), sortBy: (row) => row.host },
    {
      key: "actions",
      header: "Actions",
      align: "right",
      cell: (row) => (
        <ActionIcon variant="subtle" color="red" aria-label={`Remove: ${sentenceOf(row)}`} onClick={() => onRemove(row)}>
          <IconTrash size={16} aria-hidden />
        </ActionIcon>
      ),
    },
  ];
}
