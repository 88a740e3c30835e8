/**
 * Changes to the settings of a topic that have been typed and not yet saved.
 *
 * The law: an edit is a wanted value, or null for "back to the default"; an edit that changes nothing
 * is none.
 */

import type { AlterConfigs, Config } from "../../api/contract";

export type Edits = Readonly<Record<string, string | null>>;

export function edited(edits: Edits, config: Config, wanted: string | null): Edits {
  const { [config.name]: _before, ...others } = edits;
  const changesNothing = wanted === null ? !config.isSet : wanted === (config.value ?? "");
  return changesNothing ? others : { ...others, [config.name]: wanted };
}

export function toAlterConfigs(edits: Edits): AlterConfigs {
  const entries = Object.entries(edits);
  return {
    set: Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== null)),
    delete: entries.filter(([, wanted]) => wanted === null).map(([name]) => name),
  };
}

export function shownValue(config: Config, edits: Edits): string {
  const wanted = edits[config.name];
  if (wanted === undefined) return config.value ?? "";
  return wanted ?? config.default ?? "";
}

export function matching(configs: readonly Config[], search: string, changedOnly: boolean): Config[] {
  const wanted = search.trim().toLowerCase();
  return configs.filter(
    (config) =>
      (!changedOnly || config.isSet) &&
      (config.name.includes(wanted) || (config.documentation ?? "").toLowerCase().includes(wanted)),
  );
}
