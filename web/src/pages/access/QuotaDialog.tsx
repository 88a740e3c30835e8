/** Sets one quota of somebody, or of all who have none of their own. */

import { NativeSelect, Switch, TextInput } from "@mantine/core";
import { useState } from "react";

import { api } from "../../api/client";
import type { Quotas, SetQuota } from "../../api/contract";
import { FormDialog } from "../../components/FormDialog";
import { ENTITY_KINDS, type EntityKind, entityText, isByteRate, keysFor, parseRate } from "./quotaEntity";
import { useChange } from "./useChange";

interface Props {
  keys: string[];
  isOpen: boolean;
  onClose: () => void;
}

interface Form {
  kind: EntityKind;
  name: string;
  isDefault: boolean;
  key: string;
  rate: string;
}

export function QuotaDialog({ keys, isOpen, onClose }: Props) {
  const empty: Form = { kind: "user", name: "", isDefault: false, key: keysFor("user", keys)[0] ?? "", rate: "" };
  const [form, setForm] = useState(empty);
  const change = (changes: Partial<Form>) => setForm((before) => ({ ...before, ...changes }));
  const saving = useChange<SetQuota>({
    send: (asked) => api.put<Quotas>("/quotas", asked),
    shownIn: "quotas",
    done: (asked) => `The quota of ${entityText(asked.entity)} is set.`,
    onDone: () => {
      setForm(empty);
      onClose();
    },
  });
  const rate = parseRate(form.key, form.rate);
  const isReady = rate !== null && (form.isDefault || form.name.trim() !== "");

  return (
    <FormDialog
      title="Set a quota"
      action="Set quota"
      opened={isOpen}
      isBusy={saving.isPending}
      isReady={isReady}
      error={saving.error}
      onClose={onClose}
      onSubmit={() => saving.mutate({ entity: { [form.kind]: form.isDefault ? null : form.name.trim() }, values: { [form.key]: rate } })}
    >
      <NativeSelect
        label="For"
        data={[...ENTITY_KINDS]}
        value={form.kind}
        onChange={(event) => {
          const kind = event.currentTarget.value as EntityKind;
          change({ kind, key: keysFor(kind, keys)[0] ?? "" });
        }}
      />
      <Switch label="All who have no quota of their own" checked={form.isDefault} onChange={(event) => change({ isDefault: event.currentTarget.checked })} />
      {!form.isDefault && (
        <TextInput label="Name" required data-autofocus value={form.name} onChange={(event) => change({ name: event.currentTarget.value })} />
      )}
      <NativeSelect label="What is limited" data={keysFor(form.kind, keys)} value={form.key} onChange={(event) => change({ key: event.currentTarget.value })} />
      <TextInput
        label="At most"
        description={isByteRate(form.key) ? "Bytes a second, such as 10 MiB." : "Such as 50."}
        required
        value={form.rate}
        error={form.rate !== "" && rate === null ? "This is not a rate." : null}
        onChange={(event) => change({ rate: event.currentTarget.value })}
      />
    </FormDialog>
  );
}
