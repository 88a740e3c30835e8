/** Values of settings in words: a number of milliseconds tells nobody that it is a week. */

import type { Config } from "../../api/contract";
import { bytes, duration } from "../../lib/format";

/** From here on, a time or a size is meant as none: Kafka's largest numbers. */
const ENDLESS = 2 ** 62;

export function inWords(name: string, value: string): string | null {
  if (!/^-?\d+$/.test(value) || !/\.(ms|bytes)$/.test(name)) return null;
  const number = Number(value);
  if (number < 0 || number > ENDLESS) return "no limit";
  return name.endsWith(".ms") ? duration(number) : bytes(number);
}

/** `604800000 (7 d)`. */
export function withWords(name: string, value: string | null): string {
  if (value === null || value === "") return "none";
  const words = inWords(name, value);
  return words === null ? value : `${value} (${words})`;
}

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  "cleanup.policy": ["delete", "compact", "compact,delete"],
  "compression.type": ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"],
  "message.timestamp.type": ["CreateTime", "LogAppendTime"],
};

/** What can be chosen, with what is set now among it; null where anything can be typed. */
export function choicesOf(config: Config): string[] | null {
  const choices = config.type.toLowerCase() === "boolean" ? ["true", "false"] : CHOICES[config.name];
  if (!choices) return null;
  return [...new Set([...choices, ...(config.value ? [config.value] : [])])];
}
