import { expect, it } from "vitest";

import { fromLocalField, toLocalField } from "./localTime";

it("converts in both directions", () => {
  const ms = new Date(2026, 6, 1, 12, 30, 15).getTime();
  expect(toLocalField(ms)).toBe("2026-07-01T12:30:15");
  expect(fromLocalField(toLocalField(ms))).toBe(ms);
  expect(fromLocalField("")).toBeNull();
});
