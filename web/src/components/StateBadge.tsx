/** A state as a word and a mark. The mark has a form as well as a colour, and the word is always there. */
import classes from "./StateBadge.module.css";

export type Tone = "good" | "warning" | "bad" | "neutral";

const TONES: Record<string, Tone> = {
  healthy: "good",
  ready: "good",
  stable: "good",
  serving: "good",
  online: "good",
  succeeded: "good",
  leader: "good",
  ok: "good",
  degraded: "warning",
  draining: "warning",
  moving: "warning",
  warning: "warning",
  opening: "warning",
  closing: "warning",
  releasing: "warning",
  running: "warning",
  assigning: "warning",
  reconciling: "warning",
  "not ready": "warning",
  preparingrebalance: "warning",
  completingrebalance: "warning",
  down: "bad",
  critical: "bad",
  unreachable: "bad",
  gone: "bad",
  unavailable: "bad",
  failed: "bad",
  leaderless: "bad",
  offline: "bad",
};

export function toneOf(state: string): Tone {
  return TONES[state.toLowerCase()] ?? "neutral";
}

interface Props {
  state: string | null | undefined;
  /** Only where the word alone does not say it. */
  tone?: Tone;
  title?: string;
}

export function StateBadge({ state, tone, title }: Props) {
  const word = state || "unknown";
  return (
    <span className={classes.badge} title={title}>
      <span className={classes.dot} data-tone={tone ?? toneOf(word)} aria-hidden />
      {word}
    </span>
  );
}
