/** Texts of quotas: entities, and rates with units. */

import type { Quota } from "../../api/contract";

export type EntityKind = "user" | "client-id" | "ip";

export const ENTITY_KINDS: readonly { value: EntityKind; label: string }[] = [
  { value: "user", label: "User" },
  { value: "client-id", label: "Client ID" },
  { value: "ip", label: "IP address" },
];

/** For example `user alice, client-id (default)`. */
export function entityText(entity: Quota["entity"]): string {
  const parts = Object.entries(entity).map(([kind, name]) => `${kind} ${name ?? "(default)"}`);
  return parts.length > 0 ? parts.join(", ") : "all";
}

/** Connection quotas apply to IP addresses, all other quotas to users and client IDs. */
export function keysFor(kind: EntityKind, keys: readonly string[]): string[] {
  return keys.filter((key) => key.startsWith("connection_") === (kind === "ip"));
}

export function isByteRate(key: string): boolean {
  return key.endsWith("_byte_rate");
}

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** Parses a rate such as `10 MiB`, `1Mi` or `0.5`; returns null if it is invalid. */
export function parseRate(key: string, typed: string): number | null {
  const pattern = isByteRate(key) ? /^([\d.]+)\s*([kmgt]?)(?:i?b?)(?:\/s)?$/i : /^([\d.]+)()\s*%?(?:\/s)?$/;
  const parts = pattern.exec(typed.trim());
  const rate = Number(parts?.[1]) * (UNITS[parts?.[2]?.toLowerCase() ?? ""] ?? 1);
  if (!parts || !Number.isFinite(rate) || rate <= 0) return null;
  return isByteRate(key) ? Math.round(rate) : rate;
}
