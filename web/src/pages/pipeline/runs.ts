/** Texts for a job run. */

import type { Run } from "../../api/contract";
import { count, duration } from "../../lib/format";

/** The duration of a run; until now if it is still running. */
export function runDuration(run: Run, now: number): string {
  return duration((run.endedAtMs ?? now) - run.startedAtMs);
}

const SHOWN_TOPICS = 3;

export function topicsOf(run: Run): string {
  if (run.topics.length === 0) return "all topics";
  const more = run.topics.length - SHOWN_TOPICS;
  return run.topics.slice(0, SHOWN_TOPICS).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** Such as "1,000 in, 998 out". */
export function recordsOf(run: Run): string {
  const counts = [
    run.recordsIn === null ? null : `${count(run.recordsIn)} in`,
    run.recordsOut === null ? null : `${count(run.recordsOut)} out`,
  ];
  return counts.filter(Boolean).join(", ") || "–";
}
