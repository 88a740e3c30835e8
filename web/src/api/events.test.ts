import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { overview } from "../test/cluster";
import { type Liveness, OverviewStream } from "./events";

/** An EventSource whose events are sent by the test. */
class FakeEventSource extends EventTarget {
  static all: FakeEventSource[] = [];
  onerror: () => void = () => {};
  isClosed = false;

  constructor(readonly url: string) {
    super();
    FakeEventSource.all.push(this);
  }

  close() {
    this.isClosed = true;
  }

  push(clusterId: string) {
    this.dispatchEvent(new MessageEvent("overview", { data: JSON.stringify(overview({ clusterId })) }));
  }
}

let received: string[];
let liveness: Liveness[];
let fetchOverview: ReturnType<typeof vi.fn<() => Promise<ReturnType<typeof overview>>>>;
let stream: OverviewStream;

beforeEach(() => {
  vi.useFakeTimers();
  FakeEventSource.all = [];
  vi.stubGlobal("EventSource", FakeEventSource);
  received = [];
  liveness = [];
  fetchOverview = vi.fn(async () => overview({ clusterId: "polled" }));
  stream = new OverviewStream({ overview: ({ clusterId }) => received.push(clusterId), liveness: (now) => liveness.push(now) }, fetchOverview);
  stream.start();
});

afterEach(() => {
  stream.stop();
  vi.useRealTimers();
});

it("is live after the first event", () => {
  FakeEventSource.all[0]?.push("pushed");
  expect(received).toEqual(["pushed"]);
  expect(liveness).toEqual(["connecting", "live"]);
  expect(fetchOverview).not.toHaveBeenCalled();
});

it("polls while the stream is closed, and stops when it is open again", async () => {
  FakeEventSource.all[0]?.onerror();
  await vi.advanceTimersByTimeAsync(0);
  expect(received).toEqual(["polled"]);
  expect(liveness.at(-1)).toBe("reconnecting");

  await vi.advanceTimersByTimeAsync(1_000);
  expect(FakeEventSource.all).toHaveLength(2);
  FakeEventSource.all[1]?.push("pushed");
  expect(liveness.at(-1)).toBe("live");

  const pollCount = fetchOverview.mock.calls.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(fetchOverview.mock.calls).toHaveLength(pollCount);
});

it("reopens the stream with exponential backoff up to 30 s", async () => {
  const opened: number[] = [];
  for (let second = 0; second < 120; second += 1) {
    const newest = FakeEventSource.all.at(-1);
    if (newest && !newest.isClosed) {
      opened.push(second);
      newest.onerror();
    }
    await vi.advanceTimersByTimeAsync(1_000);
  }
  expect(opened).toEqual([0, 1, 3, 7, 15, 31, 61, 91]);
});

it("is offline when polling fails as well", async () => {
  fetchOverview.mockRejectedValue(new Error("unreachable"));
  FakeEventSource.all[0]?.onerror();
  await vi.advanceTimersByTimeAsync(0);
  expect(liveness.at(-1)).toBe("offline");
});

it("polls and reopens the stream after a long silence", async () => {
  FakeEventSource.all[0]?.push("pushed");
  await vi.advanceTimersByTimeAsync(70_000);
  FakeEventSource.all[0]?.push("pushed");
  await vi.advanceTimersByTimeAsync(70_000);
  expect(fetchOverview).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(received.at(-1)).toBe("polled");
  expect(FakeEventSource.all[0]?.isClosed).toBe(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(FakeEventSource.all).toHaveLength(2);
});

it("reports nothing after stop", async () => {
  FakeEventSource.all[0]?.onerror();
  stream.stop();
  const before = [...received];
  await vi.advanceTimersByTimeAsync(120_000);
  expect(received).toEqual(before);
  expect(FakeEventSource.all).toHaveLength(1);
});
