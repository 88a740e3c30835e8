import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { overview } from "../test/cluster";
import { type Liveness, OverviewStream } from "./events";

/** As a browser's, moved by hand. */
class HandSource extends EventTarget {
  static all: HandSource[] = [];
  onerror: () => void = () => {};
  isClosed = false;

  constructor(readonly url: string) {
    super();
    HandSource.all.push(this);
  }

  close() {
    this.isClosed = true;
  }

  tell(clusterId: string) {
    this.dispatchEvent(new MessageEvent("overview", { data: JSON.stringify(overview({ clusterId })) }));
  }
}

let told: string[];
let liveness: Liveness[];
let ask: ReturnType<typeof vi.fn<() => Promise<ReturnType<typeof overview>>>>;
let stream: OverviewStream;

beforeEach(() => {
  vi.useFakeTimers();
  HandSource.all = [];
  vi.stubGlobal("EventSource", HandSource);
  told = [];
  liveness = [];
  ask = vi.fn(async () => overview({ clusterId: "asked" }));
  stream = new OverviewStream({ overview: ({ clusterId }) => told.push(clusterId), liveness: (now) => liveness.push(now) }, ask);
  stream.start();
});

afterEach(() => {
  stream.stop();
  vi.useRealTimers();
});

it("is live with the first event", () => {
  HandSource.all[0]?.tell("pushed");
  expect(told).toEqual(["pushed"]);
  expect(liveness).toEqual(["connecting", "live"]);
  expect(ask).not.toHaveBeenCalled();
});

it("asks while the stream is away, and stops when it is back", async () => {
  HandSource.all[0]?.onerror();
  await vi.advanceTimersByTimeAsync(0);
  expect(told).toEqual(["asked"]);
  expect(liveness.at(-1)).toBe("reconnecting");

  await vi.advanceTimersByTimeAsync(1_000);
  expect(HandSource.all).toHaveLength(2);
  HandSource.all[1]?.tell("pushed");
  expect(liveness.at(-1)).toBe("live");

  const asked = ask.mock.calls.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(ask.mock.calls).toHaveLength(asked);
});

it("waits longer and longer between tries, never more than half a minute", async () => {
  const opened: number[] = [];
  for (let second = 0; second < 120; second += 1) {
    const newest = HandSource.all.at(-1);
    if (newest && !newest.isClosed) {
      opened.push(second);
      newest.onerror();
    }
    await vi.advanceTimersByTimeAsync(1_000);
  }
  expect(opened).toEqual([0, 1, 3, 7, 15, 31, 61, 91]);
});

it("says so when asking fails as well", async () => {
  ask.mockRejectedValue(new Error("away"));
  HandSource.all[0]?.onerror();
  await vi.advanceTimersByTimeAsync(0);
  expect(liveness.at(-1)).toBe("offline");
});

it("does not take silence for news: asks, and opens anew", async () => {
  HandSource.all[0]?.tell("pushed");
  await vi.advanceTimersByTimeAsync(70_000);
  HandSource.all[0]?.tell("pushed");
  await vi.advanceTimersByTimeAsync(70_000);
  expect(ask).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(told.at(-1)).toBe("asked");
  expect(HandSource.all[0]?.isClosed).toBe(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(HandSource.all).toHaveLength(2);
});

it("is silent once stopped", async () => {
  HandSource.all[0]?.onerror();
  stream.stop();
  const before = [...told];
  await vi.advanceTimersByTimeAsync(120_000);
  expect(told).toEqual(before);
  expect(HandSource.all).toHaveLength(1);
});
