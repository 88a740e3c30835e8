import { describe, expect, it } from "vitest";

import { EMPTY_FORM, problemOf, toReset } from "./resetForm";

describe("moving a group", () => {
  it("is for all topics unless some are chosen", () => {
    expect(toReset(EMPTY_FORM, false)).toEqual({ to: { kind: "earliest", number: 0 }, topics: null, execute: false });
    expect(toReset({ ...EMPTY_FORM, topics: ["orders"] }, true).topics).toEqual({ orders: [] });
  });

  it("sends the number that its kind has", () => {
    expect(toReset({ ...EMPTY_FORM, kind: "shift", shift: "-5" }, false).to.number).toBe(-5);
    expect(toReset({ ...EMPTY_FORM, kind: "offset", offset: "12" }, false).to.number).toBe(12);
    expect(toReset({ ...EMPTY_FORM, kind: "time", time: "2026-01-02T03:04" }, false).to.number).toBe(
      new Date(2026, 0, 2, 3, 4).getTime(),
    );
  });

  it("says what is missing", () => {
    expect(problemOf(EMPTY_FORM)).toBeNull();
    expect(problemOf({ ...EMPTY_FORM, kind: "time" })).toContain("date");
    expect(problemOf({ ...EMPTY_FORM, kind: "offset", offset: "-1" })).toContain("offset");
    expect(problemOf({ ...EMPTY_FORM, kind: "shift", shift: "1.5" })).toContain("whole number");
  });
});
