import { Button, Group, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { api, at } from "../../api/client";
import type { AccessOptions, User, Users } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Note } from "../../components/Note";
import { notifySuccess } from "../../components/notify";
import { UserDialog } from "./UserDialog";

type Action = { kind: "create" } | { kind: "password" | "delete"; user: User };

export function UsersTable({ users, options }: { users: Users; options: AccessOptions }) {
  const [action, setAction] = useState<Action | null>(null);
  const client = useQueryClient();
  const columns = useMemo(() => columnsWith(setAction), []);
  const close = () => setAction(null);
  const userToDelete = action?.kind === "delete" ? action.user.name : "";

  async function deleteUser() {
    await api.delete(at`/users/${userToDelete}`);
    notifySuccess(`User ${userToDelete} deleted.`);
    await client.invalidateQueries({ queryKey: ["users"] });
  }

  return (
    <Stack>
      {users.problem && <Note tone="warning">{users.problem}</Note>}
      <DataTable
        label="Users"
        columns={columns}
        rows={users.items}
        rowKey={(row) => row.name}
        searchText={(row) => row.name}
        initial={{ sort: "name" }}
        minWidth={520}
        tools={
          <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setAction({ kind: "create" })} disabled={users.problem !== null && users.items.length === 0}>
            Create user
          </Button>
        }
        empty={<EmptyState title="There are no users.">Users authenticate to brokers with SCRAM.</EmptyState>}
      />
      <UserDialog
        user={action?.kind === "password" ? action.user : null}
        mechanisms={options.mechanisms}
        isOpen={action?.kind === "create" || action?.kind === "password"}
        onClose={close}
      />
      <ConfirmDialog
        opened={action?.kind === "delete"}
        onClose={close}
        title={`Delete ${userToDelete}`}
        action="Delete user"
        typed={userToDelete}
        danger
        onConfirm={deleteUser}
      >
        The user can no longer authenticate. ACLs and quotas of the user are kept, and apply again to a new user with the same name.
      </ConfirmDialog>
    </Stack>
  );
}

function columnsWith(onAction: (action: Action) => void): Column<User>[] {
  return [
    { key: "name", header: "Name", cell: (row) => row.name, sortBy: (row) => row.name },
    { key: "mechanisms", header: "Mechanisms", cell: (row) => row.mechanisms.join(", ") },
    {
      key: "actions",
      header: "Actions",
      align: "right",
      cell: (user) => (
        <Group gap="xs" justify="flex-end" wrap="nowrap">
          <Button size="compact-sm" variant="default" aria-label={`Change password of ${user.name}`} onClick={() => onAction({ kind: "password", user })}>
            Change password
          </Button>
          <Button size="compact-sm" variant="outline" color="var(--ks-bad)" aria-label={`Delete ${user.name}`} onClick={() => onAction({ kind: "delete", user })}>
            Delete
          </Button>
        </Group>
      ),
    },
  ];
}
