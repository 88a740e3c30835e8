import { ActionIcon, Button, Stack } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { api } from "../../api/client";
import type { AccessOptions, Acl, Acls } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Note } from "../../components/Note";
import { notifySuccess } from "../../components/notify";
import { StateBadge } from "../../components/StateBadge";
import { AclDialog } from "./AclDialog";

export function AclsTable({ acls, options }: { acls: Acls; options: AccessOptions }) {
  const [isCreating, setCreating] = useState(false);
  const [aclToDelete, setAclToDelete] = useState<Acl | null>(null);
  const client = useQueryClient();
  const columns = useMemo(() => columnsWith(setAclToDelete), []);

  async function deleteAcl() {
    await api.delete("/acls", aclToDelete);
    notifySuccess("ACL deleted.");
    await client.invalidateQueries({ queryKey: ["acls"] });
  }

  return (
    <Stack>
      {!acls.isEnabled && (
        <Note tone="warning" title="Authorization is disabled">
          Every client that can connect may do everything, and ACLs have no effect. {acls.problem}
        </Note>
      )}
      {acls.isEnabled && acls.problem && <Note tone="warning">{acls.problem}</Note>}
      <DataTable
        label="ACLs"
        columns={columns}
        rows={acls.items}
        rowKey={(row) => JSON.stringify(row)}
        searchText={(row) => Object.values(row).join(" ")}
        initial={{ sort: "principal" }}
        minWidth={800}
        tools={
          <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setCreating(true)} disabled={acls.problem !== null && acls.items.length === 0}>
            Create ACL
          </Button>
        }
        empty={<EmptyState title="There are no ACLs.">With authorization enabled, only super users have access.</EmptyState>}
      />
      <AclDialog options={options} isOpen={isCreating} onClose={() => setCreating(false)} />
      <ConfirmDialog opened={aclToDelete !== null} onClose={() => setAclToDelete(null)} title="Delete an ACL" action="Delete ACL" danger onConfirm={deleteAcl}>
        {aclToDelete && aclText(aclToDelete)} The change applies at once, also to open connections.
      </ConfirmDialog>
    </Stack>
  );
}

function aclText(acl: Acl): string {
  const permission = acl.permission.toUpperCase() === "DENY" ? "denied" : "allowed";
  const name = acl.patternType.toUpperCase() === "PREFIXED" ? `with prefix ${acl.resourceName}` : acl.resourceName;
  return `${acl.principal} is ${permission} ${acl.operation} on ${acl.resourceType} ${name}.`;
}

function columnsWith(onDelete: (acl: Acl) => void): Column<Acl>[] {
  return [
    { key: "principal", header: "Principal", cell: (row) => row.principal, sortBy: (row) => row.principal },
    {
      key: "permission",
      header: "Permission",
      cell: (row) => <StateBadge state={row.permission.toLowerCase()} tone={row.permission.toUpperCase() === "DENY" ? "bad" : "good"} />,
      sortBy: (row) => row.permission,
    },
    { key: "operation", header: "Operation", cell: (row) => row.operation, sortBy: (row) => row.operation },
    { key: "type", header: "Resource type", cell: (row) => row.resourceType, sortBy: (row) => row.resourceType },
    {
      key: "name",
      header: "Resource name",
      cell: (row) => <span className="ks-mono">{row.patternType.toUpperCase() === "PREFIXED" ? `${row.resourceName}…` : row.resourceName}</span>,
      sortBy: (row) => row.resourceName,
    },
    { key: "pattern", header: "Pattern type", cell: (row) => row.patternType.toLowerCase(), sortBy: (row) => row.patternType },
    { key: "host", header: "Host", cell: (row) => (row.host === "*" ? "any" : row.host), sortBy: (row) => row.host },
    {
      key: "actions",
      header: "Actions",
      align: "right",
      cell: (row) => (
        <ActionIcon variant="subtle" color="red" aria-label={`Delete: ${aclText(row)}`} onClick={() => onDelete(row)}>
          <IconTrash size={16} aria-hidden />
        </ActionIcon>
      ),
    },
  ];
}
