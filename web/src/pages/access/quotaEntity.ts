/** Quotas as people read and write them: whom they are for, and rates with units. */

import type { Quota } from "../../api/contract";

export type EntityKind = "user" | "client-id" | "ip";

export const ENTITY_KINDS: readonly { value: EntityKind; label: string }[] = [
  { value: "user", label: "a user" },
  { value: "client-id", label: "a client id" },
  { value: "ip", label: "an address" },
];

/** Such as `user alice, client-id all others`. */
export function entityText(entity: Quota["entity"]): string {
  const parts = Object.entries(entity).map(([kind, name]) => `${kind} ${name ?? "(all others)"}`);
  return parts.length > 0 ? parts.join(", ") : "all";
}

/** New connections are counted by address, and nothing else is. */
export function keysFor(kind: EntityKind, keys: readonly string[]): string[] {
  return keys.filter((key) => key.startsWith("connection_") === (kind === "ip"));
}

export function isByteRate(key: string): boolean {
  return key.endsWith("_byte_rate");
}

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** A rate as it was typed, such as `10 MiB`, `1Mi` or `0.5`; null if it is none. */
export function parseRate(key: string, typed: string): number | null {
  const pattern = isByteRate(key) ? /^([\d.]+)\s*([kmgt]?)(?:i?b?)(?:\/s)?$/i : /^([\d.]+)()\s*%?(?:\/s)?$/;
  const parts = pattern.exec(typed.trim());
  const rate = Number(parts?.[1]) * (UNITS[parts?.[2]?.toLowerCase() ?? ""] ?? 1);
  if (!parts || !Number.isFinite(rate) || rate <= 0) return null;
  return isByteRate(key) ? Math.round(rate) : rate;
}
