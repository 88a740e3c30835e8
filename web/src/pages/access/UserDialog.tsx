/** Creates a SCRAM user or changes a password. The password is cleared after it was sent. */

import { MultiSelect, PasswordInput, TextInput } from "@mantine/core";
import { useState } from "react";

import { api, at } from "../../api/client";
import type { User } from "../../api/contract";
import { FormDialog } from "../../components/FormDialog";
import { useChange } from "./useChange";

interface Props {
  /** The user whose password is changed; null to create a user. */
  user: User | null;
  mechanisms: string[];
  isOpen: boolean;
  onClose: () => void;
}

interface UserForm {
  name: string;
  password: string;
  mechanisms: string[];
}

const EMPTY_FORM: UserForm = { name: "", password: "", mechanisms: [] };

export function UserDialog({ user, mechanisms, isOpen, onClose }: Props) {
  const [form, setForm] = useState(EMPTY_FORM);
  const change = (changes: Partial<UserForm>) => setForm((before) => ({ ...before, ...changes }));
  const saving = useChange<UserForm>({
    send: (submitted) =>
      user ? api.put<User>(at`/users/${user.name}`, { password: submitted.password }) : api.post<User>("/users", submitted),
    queryKey: "users",
    message: (submitted) => (user ? `Password of ${user.name} changed.` : `User ${submitted.name} created.`),
    onDone: close,
  });

  function close() {
    setForm(EMPTY_FORM);
    saving.reset();
    onClose();
  }

  return (
    <FormDialog
      title={user ? `New password for ${user.name}` : "Create a user"}
      action={user ? "Change password" : "Create user"}
      opened={isOpen}
      isBusy={saving.isPending}
      isReady={form.password !== "" && (user !== null || form.name.trim() !== "")}
      error={saving.error}
      onClose={close}
      onSubmit={() => saving.mutate(form)}
    >
      {user === null && (
        <TextInput
          label="Name"
          data-autofocus
          required
          autoComplete="off"
          value={form.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
        />
      )}
      <PasswordInput
        label="Password"
        required
        autoComplete="new-password"
        value={form.password}
        onChange={(event) => change({ password: event.currentTarget.value })}
        visibilityToggleButtonProps={{ "aria-label": "Show or hide password" }}
      />
      {user === null && (
        <MultiSelect
          label="Mechanisms"
          placeholder={form.mechanisms.length === 0 ? "All" : undefined}
          data={mechanisms}
          value={form.mechanisms}
          onChange={(chosen) => change({ mechanisms: chosen })}
          clearable
          clearButtonProps={{ "aria-label": "All mechanisms" }}
        />
      )}
    </FormDialog>
  );
}
