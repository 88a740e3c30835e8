import { Button, Group, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { api, at } from "../../api/client";
import type { AccessWords, User, Users } from "../../api/contract";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { Note } from "../../components/Note";
import { notifyDone } from "../../components/notify";
import { UserDialog } from "./UserDialog";

type Action = { kind: "create" } | { kind: "password" | "delete"; user: User };

export function UsersTable({ users, words }: { users: Users; words: AccessWords }) {
  const [action, setAction] = useState<Action | null>(null);
  const client = useQueryClient();
  const columns = useMemo(() => columnsWith(setAction), []);
  const close = () => setAction(null);
  const deleted = action?.kind === "delete" ? action.user.name : "";

  async function remove() {
    await api.delete(at`/users/${deleted}`);
    notifyDone(`User ${deleted} is deleted.`);
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
        empty={<EmptyState title="There are no users.">Users log in to the brokers with a password (SCRAM).</EmptyState>}
      />
      <UserDialog
        user={action?.kind === "password" ? action.user : null}
        mechanisms={words.mechanisms}
        isOpen={action?.kind === "create" || action?.kind === "password"}
        onClose={close}
      />
      <ConfirmDialog
        opened={action?.kind === "delete"}
        onClose={close}
        title={`Delete ${deleted}`}
        action="Delete user"
        typed={deleted}
        danger
        onConfirm={remove}
      >
        The user cannot log in any more. Rules and quotas that name the user stay, and hold again for a new user of the same name.
      </ConfirmDialog>
    </Stack>
  );
}

function columnsWith(onAction: (action: Action) => void): Column<User>[] {
  return [
    { key: "name", header: "Name", cell: (row) => row.name, sortBy: (row) => row.name },
    { key: "mechanisms", header: "Logs in with", cell: (row) => row.mechanisms.join(", ") },
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
