/** Sets one quota of an entity, or the default quota of an entity type. */

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
    send: (request) => api.put<Quotas>("/quotas", request),
    queryKey: "quotas",
    message: (request) => `Quota of ${entityText(request.entity)} set.`,
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
        label="Entity type"
        data={[...ENTITY_KINDS]}
        value={form.kind}
        onChange={(event) => {
          const kind = event.currentTarget.value as EntityKind;
          change({ kind, key: keysFor(kind, keys)[0] ?? "" });
        }}
      />
      <Switch label="Default for entities without their own quota" checked={form.isDefault} onChange={(event) => change({ isDefault: event.currentTarget.checked })} />
      {!form.isDefault && (
        <TextInput label="Name" required data-autofocus value={form.name} onChange={(event) => change({ name: event.currentTarget.value })} />
      )}
      <NativeSelect label="Quota type" data={keysFor(form.kind, keys)} value={form.key} onChange={(event) => change({ key: event.currentTarget.value })} />
      <TextInput
        label="Limit"
        description={isByteRate(form.key) ? "Bytes per second, for example 10 MiB." : "For example 50."}
        required
        value={form.rate}
        error={form.rate !== "" && rate === null ? "Not a valid rate." : null}
        onChange={(event) => change({ rate: event.currentTarget.value })}
      />
    </FormDialog>
  );
}
