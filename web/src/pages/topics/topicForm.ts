import type { CreateTopic } from "../../api/contract";

export interface ConfigRow {
  name: string;
  value: string;
}

export interface TopicForm {
  name: string;
  partitionCount: string | number;
  cleanupPolicy: string;
  retention: string;
  configs: ConfigRow[];
}

export const EMPTY_TOPIC: TopicForm = { name: "", partitionCount: "", cleanupPolicy: "", retention: "", configs: [] };

const DAY_MS = 86_400_000;

/** The empty value leaves the config at the cluster default. */
export const CLEANUP_POLICIES = [
  { value: "", label: "Cluster default" },
  { value: "delete", label: "Delete old records (delete)" },
  { value: "compact", label: "Keep the latest record of each key (compact)" },
  { value: "compact,delete", label: "Both (compact,delete)" },
];

export const RETENTIONS = [
  { value: "", label: "Cluster default" },
  { value: String(DAY_MS / 24), label: "1 hour" },
  { value: String(DAY_MS), label: "1 day" },
  { value: String(7 * DAY_MS), label: "7 days" },
  { value: String(30 * DAY_MS), label: "30 days" },
  { value: "-1", label: "Unlimited" },
];

/** Validates a topic name; the empty name has no error, because nothing is typed yet. */
export function nameError(name: string): string | null {
  if (name === "") return null;
  if (name === "." || name === "..") return "The names . and .. are not allowed.";
  if (name.length > 249) return "The name is longer than 249 characters.";
  if (!/^[A-Za-z0-9._-]+$/.test(name)) return "Only letters, digits, dots, underscores and dashes.";
  return null;
}

export function toCreateTopic(form: TopicForm): CreateTopic {
  const configs: Record<string, string> = {};
  if (form.cleanupPolicy) configs["cleanup.policy"] = form.cleanupPolicy;
  if (form.retention) configs["retention.ms"] = form.retention;
  for (const { name, value } of form.configs) {
    if (name.trim()) configs[name.trim()] = value.trim();
  }
  return { name: form.name, partitionCount: form.partitionCount === "" ? null : Number(form.partitionCount), configs };
}
