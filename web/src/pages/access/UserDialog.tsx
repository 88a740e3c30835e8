/** A new user, or a new password for one. A password is forgotten as soon as it was sent. */

import { MultiSelect, PasswordInput, TextInput } from "@mantine/core";
import { useState } from "react";

import { api, at } from "../../api/client";
import type { User } from "../../api/contract";
import { FormDialog } from "../../components/FormDialog";
import { useChange } from "./useChange";

interface Props {
  /** Whose password is to change; null for a new user. */
  user: User | null;
  mechanisms: string[];
  isOpen: boolean;
  onClose: () => void;
}

interface Asked {
  name: string;
  password: string;
  mechanisms: string[];
}

const NOBODY: Asked = { name: "", password: "", mechanisms: [] };

export function UserDialog({ user, mechanisms, isOpen, onClose }: Props) {
  const [asked, setAsked] = useState(NOBODY);
  const change = (changes: Partial<Asked>) => setAsked((before) => ({ ...before, ...changes }));
  const saving = useChange<Asked>({
    send: (wanted) =>
      user ? api.put<User>(at`/users/${user.name}`, { password: wanted.password }) : api.post<User>("/users", wanted),
    shownIn: "users",
    done: (wanted) => (user ? `The password of ${user.name} is changed.` : `User ${wanted.name} can log in now.`),
    onDone: close,
  });

  function close() {
    setAsked(NOBODY);
    saving.reset();
    onClose();
  }

  return (
    <FormDialog
      title={user ? `New password for ${user.name}` : "Create a user"}
      action={user ? "Change password" : "Create user"}
      opened={isOpen}
      isBusy={saving.isPending}
      isReady={asked.password !== "" && (user !== null || asked.name.trim() !== "")}
      error={saving.error}
      onClose={close}
      onSubmit={() => saving.mutate(asked)}
    >
      {user === null && (
        <TextInput
          label="Name"
          data-autofocus
          required
          autoComplete="off"
          value={asked.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
        />
      )}
      <PasswordInput
        label="Password"
        required
        autoComplete="new-password"
        value={asked.password}
        onChange={(event) => change({ password: event.currentTarget.value })}
        visibilityToggleButtonProps={{ "aria-label": "Show or hide the password" }}
      />
      {user === null && (
        <MultiSelect
          label="Mechanisms"
          placeholder={asked.mechanisms.length === 0 ? "All" : undefined}
          data={mechanisms}
          value={asked.mechanisms}
          onChange={(chosen) => change({ mechanisms: chosen })}
          clearable
          clearButtonProps={{ "aria-label": "All mechanisms" }}
        />
      )}
    </FormDialog>
  );
}
