/**
 * The overview as it changes: pushed by the server where that works, asked for where it does not.
 *
 * The law: there is always a next try. A stream that breaks, or that has been silent for too long, is opened
 * again, after longer and longer pauses up to half a minute, and in between the overview is asked for, so that a
 * page never stands still unseen.
 */
import type { Overview } from "./contract";

export type Liveness = "connecting" | "live" | "reconnecting" | "offline";

export interface Listener {
  overview: (overview: Overview) => void;
  liveness: (liveness: Liveness) => void;
}

const ADDRESS = "/api/v1/events";
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
const POLL_MS = 5_000;
/** A line that was cut without a word looks like one on which nothing happens. */
const LONGEST_SILENCE_MS = 75_000;

export class OverviewStream {
  private source: EventSource | null = null;
  private pause = FIRST_PAUSE_MS;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private poll: ReturnType<typeof setInterval> | undefined;
  private stopped = true;

  constructor(
    private readonly listener: Listener,
    private readonly ask: () => Promise<Overview>,
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
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    this.stopPolling();
  }

  private open(): void {
    if (typeof EventSource === "undefined") return this.startPolling();
    const source = new EventSource(ADDRESS);
    this.source = source;
    source.onerror = () => this.reopenLater(source);
    this.listenFor(source);
    source.addEventListener("overview", (event) => {
      this.listenFor(source);
      this.pause = FIRST_PAUSE_MS;
      this.stopPolling();
      this.listener.liveness("live");
      this.listener.overview(JSON.parse((event as MessageEvent<string>).data) as Overview);
    });
  }

  private listenFor(source: EventSource): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.reopenLater(source), LONGEST_SILENCE_MS);
  }

  private reopenLater(source: EventSource): void {
    source.close();
    clearTimeout(this.silence);
    clearTimeout(this.retry);
    this.startPolling();
    this.retry = setTimeout(() => this.open(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
  }

  private startPolling(): void {
    this.listener.liveness("reconnecting");
    if (this.poll !== undefined) return;
    this.poll = setInterval(() => void this.askOnce(), POLL_MS);
    void this.askOnce();
  }

  private stopPolling(): void {
    clearInterval(this.poll);
    this.poll = undefined;
  }

  private async askOnce(): Promise<void> {
    try {
      const overview = await this.ask();
      if (this.stopped || this.poll === undefined) return;
      this.listener.liveness("reconnecting");
      this.listener.overview(overview);
    } catch {
      if (!this.stopped && this.poll !== undefined) this.listener.liveness("offline");
    }
  }
}
