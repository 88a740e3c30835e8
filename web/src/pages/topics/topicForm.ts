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

/** An empty choice leaves it to the cluster. */
export const CLEANUP_POLICIES = [
  { value: "", label: "As the cluster says" },
  { value: "delete", label: "Delete what is old" },
  { value: "compact", label: "Keep the newest of each key" },
  { value: "compact,delete", label: "Both" },
];

export const RETENTIONS = [
  { value: "", label: "As long as the cluster says" },
  { value: String(DAY_MS / 24), label: "1 hour" },
  { value: String(DAY_MS), label: "1 day" },
  { value: String(7 * DAY_MS), label: "7 days" },
  { value: String(30 * DAY_MS), label: "30 days" },
  { value: "-1", label: "For ever" },
];

/** Why a name cannot be one; the empty one is not complained about while nothing was typed. */
export function nameProblem(name: string): string | null {
  if (name === "") return null;
  if (name === "." || name === "..") return "A topic cannot be called that.";
  if (name.length > 249) return "A name has at most 249 characters.";
  if (!/^[A-Za-z0-9._-]+$/.test(name)) return "Only letters, digits, dots, underscores and dashes.";
  return null;
}

export function asCreateTopic(form: TopicForm): CreateTopic {
  const configs: Record<string, string> = {};
  if (form.cleanupPolicy) configs["cleanup.policy"] = form.cleanupPolicy;
  if (form.retention) configs["retention.ms"] = form.retention;
  for (const { name, value } of form.configs) {
    if (name.trim()) configs[name.trim()] = value.trim();
  }
  return { name: form.name, partitionCount: form.partitionCount === "" ? null : Number(form.partitionCount), configs };
}
