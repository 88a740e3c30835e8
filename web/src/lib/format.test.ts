import { describe, expect, it } from "vitest";

import { bytes, byteRate, compact, count, duration, latency, money, percent, plural, rate, relativeTime } from "./format";

describe("bytes", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1 KiB"],
    [1536, "1.5 KiB"],
    [150 * 1024, "150 KiB"],
    [5 * 1024 ** 3, "5 GiB"],
    [2 ** 90, "1073741824 EiB"],
    [-2048, "-2 KiB"],
    [null, "–"],
    [Number.NaN, "–"],
  ])("%s → %s", (value, text) => expect(bytes(value)).toBe(text));
});

describe("duration", () => {
  it.each([
    [0, "0 ms"],
    [999, "999 ms"],
    [61_000, "1 min 1 s"],
    [3_600_000, "1 h"],
    [90_061_000, "1 d 1 h"],
    [undefined, "–"],
  ])("%s → %s", (value, text) => expect(duration(value)).toBe(text));
});

describe("relativeTime", () => {
  const now = 1_700_000_000_000;
  it.each([
    [now, "now"],
    [now - 30_000, "30 s ago"],
    [now - 61_000, "1 min ago"],
    [now + 7_300_000, "in 2 h"],
    [null, "–"],
  ])("%s → %s", (value, text) => expect(relativeTime(value, now)).toBe(text));
});

it("formats counts, rates, money and latencies", () => {
  expect(count(1234567)).toBe("1,234,567");
  expect(compact(1234567)).toBe("1.2M");
  expect(byteRate(2048)).toBe("2 KiB/s");
  expect(rate(2.5, "requests")).toBe("2.5 requests/s");
  expect(rate(0)).toBe("0/s");
  expect(percent(0.005)).toBe("0.5%");
  expect(percent(1)).toBe("100%");
  expect(money(1.5)).toBe("$1.50");
  expect(money(0.0042)).toBe("$0.0042");
  expect(latency(0.042)).toBe("42 ms");
  expect(latency(1.25)).toBe("1.3 s");
  expect(plural(1, "partition")).toBe("1 partition");
  expect(plural(2, "reply", "replies")).toBe("2 replies");
});
