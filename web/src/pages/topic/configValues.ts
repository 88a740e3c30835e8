/** Readable values of configs: 604800000 ms is 7 d. */

import type { Config } from "../../api/contract";
import { bytes, duration } from "../../lib/format";

/** Times and sizes above this mean no limit: Kafka uses the largest long. */
const NO_LIMIT_MIN = 2 ** 62;

export function readableValue(name: string, value: string): string | null {
  if (!/^-?\d+$/.test(value) || !/\.(ms|bytes)$/.test(name)) return null;
  const number = Number(value);
  if (number < 0 || number > NO_LIMIT_MIN) return "no limit";
  return name.endsWith(".ms") ? duration(number) : bytes(number);
}

/** `604800000 (7 d)`. */
export function withReadableValue(name: string, value: string | null): string {
  if (value === null || value === "") return "none";
  const readable = readableValue(name, value);
  return readable === null ? value : `${value} (${readable})`;
}

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  "cleanup.policy": ["delete", "compact", "compact,delete"],
  "compression.type": ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"],
  "message.timestamp.type": ["CreateTime", "LogAppendTime"],
};

/** The possible values, including the current one; null if the value is free text. */
export function choicesOf(config: Config): string[] | null {
  const choices = config.type.toLowerCase() === "boolean" ? ["true", "false"] : CHOICES[config.name];
  if (!choices) return null;
  return [...new Set([...choices, ...(config.value ? [config.value] : [])])];
}
