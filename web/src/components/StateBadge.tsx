/** A state as text with a symbol. The symbol differs by shape as well as by colour. */
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
  ongoing: "good",
  preparecommit: "warning",
  prepareabort: "warning",
  hanging: "bad",
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
  /** Overrides the tone that follows from the state. */
  tone?: Tone;
  title?: string;
}

export function StateBadge({ state, tone, title }: Props) {
  const label = state || "unknown";
  return (
    <span className={classes.badge} title={title}>
      <span className={classes.dot} data-tone={tone ?? toneOf(label)} aria-hidden />
      {label}
    </span>
  );
}
