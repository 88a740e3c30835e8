/**
 * The live overview: server-sent events, with polling as the fallback.
 *
 * Invariant: a stream that fails or is silent for too long is reopened, with exponential backoff up to 30 s. In the
 * meantime the overview is polled.
 */
import type { Overview } from "./contract";

export type Liveness = "connecting" | "live" | "reconnecting" | "offline";

export interface Listener {
  overview: (overview: Overview) => void;
  liveness: (liveness: Liveness) => void;
}

const EVENTS_URL = "/api/v1/events";
const BACKOFF_MS_MIN = 1_000;
const BACKOFF_MS_MAX = 30_000;
const POLL_INTERVAL_MS = 5_000;
/** A dead connection looks the same as an idle one, so silence has a limit. */
const SILENCE_MS_MAX = 75_000;

export class OverviewStream {
  private source: EventSource | null = null;
  private backoffMs = BACKOFF_MS_MIN;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private silenceTimer: ReturnType<typeof setTimeout> | undefined;
  private pollTimer: ReturnType<typeof setInterval> | undefined;
  private stopped = true;

  constructor(
    private readonly listener: Listener,
    private readonly fetchOverview: () => Promise<Overview>,
  ) {}

  start(): void {
    this.stopped = false;
    this.listener.liveness("connecting");
    this.open();
  }

  stop(): void {
    this.stopped = true;
    this.source?.close();
    this.source = null;
    clearTimeout(this.retryTimer);
    clearTimeout(this.silenceTimer);
    this.stopPolling();
  }

  private open(): void {
    if (typeof EventSource === "undefined") return this.startPolling();
    const source = new EventSource(EVENTS_URL);
    this.source = source;
    source.onerror = () => this.reopenLater(source);
    this.restartSilenceTimer(source);
    source.addEventListener("overview", (event) => {
      this.restartSilenceTimer(source);
      this.backoffMs = BACKOFF_MS_MIN;
      this.stopPolling();
      this.listener.liveness("live");
      this.listener.overview(JSON.parse((event as MessageEvent<string>).data) as Overview);
    });
  }

  private restartSilenceTimer(source: EventSource): void {
    clearTimeout(this.silenceTimer);
    this.silenceTimer = setTimeout(() => this.reopenLater(source), SILENCE_MS_MAX);
  }

  private reopenLater(source: EventSource): void {
    source.close();
    clearTimeout(this.silenceTimer);
    clearTimeout(this.retryTimer);
    this.startPolling();
    this.retryTimer = setTimeout(() => this.open(), this.backoffMs);
    this.backoffMs = Math.min(this.backoffMs * 2, BACKOFF_MS_MAX);
  }

  private startPolling(): void {
    this.listener.liveness("reconnecting");
    if (this.pollTimer !== undefined) return;
    this.pollTimer = setInterval(() => void this.pollOnce(), POLL_INTERVAL_MS);
    void this.pollOnce();
  }

  private stopPolling(): void {
    clearInterval(this.pollTimer);
    this.pollTimer = undefined;
  }

  private async pollOnce(): Promise<void> {
    try {
      const overview = await this.fetchOverview();
      if (this.stopped || this.pollTimer === undefined) return;
      this.listener.liveness("reconnecting");
      this.listener.overview(overview);
    } catch {
      if (!this.stopped && this.pollTimer !== undefined) this.listener.liveness("offline");
    }
  }
}
