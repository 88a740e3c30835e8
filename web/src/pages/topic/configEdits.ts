/**
 * Unsaved changes of topic configs.
 *
 * Invariant: an edit is a new value, or null for a reset to the default; a value that changes nothing is no edit.
 */

import type { AlterConfigs, Config } from "../../api/contract";

export type Edits = Readonly<Record<string, string | null>>;

export function edited(edits: Edits, config: Config, value: string | null): Edits {
  const { [config.name]: _before, ...others } = edits;
  const changesNothing = value === null ? !config.isSet : value === (config.value ?? "");
  return changesNothing ? others : { ...others, [config.name]: value };
}

export function toAlterConfigs(edits: Edits): AlterConfigs {
  const entries = Object.entries(edits);
  return {
    set: Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== null)),
    delete: entries.filter(([, value]) => value === null).map(([name]) => name),
  };
}

export function shownValue(config: Config, edits: Edits): string {
  const edit = edits[config.name];
  if (edit === undefined) return config.value ?? "";
  return edit ?? config.default ?? "";
}

export function matching(configs: readonly Config[], search: string, changedOnly: boolean): Config[] {
  const text = search.trim().toLowerCase();
  return configs.filter(
    (config) =>
      (!changedOnly || config.isSet) &&
      (config.name.includes(text) || (config.documentation ?? "").toLowerCase().includes(text)),
  );
}
