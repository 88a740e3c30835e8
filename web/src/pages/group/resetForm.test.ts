import { describe, expect, it } from "vitest";

import { EMPTY_FORM, validationError, toReset } from "./resetForm";

describe("the offset reset form", () => {
  it("applies to all topics unless some are selected", () => {
    expect(toReset(EMPTY_FORM, false)).toEqual({ to: { kind: "earliest", number: 0 }, topics: null, execute: false });
    expect(toReset({ ...EMPTY_FORM, topics: ["orders"] }, true).topics).toEqual({ orders: [] });
  });

  it("sends the number of the selected kind", () => {
    expect(toReset({ ...EMPTY_FORM, kind: "shift", shift: "-5" }, false).to.number).toBe(-5);
    expect(toReset({ ...EMPTY_FORM, kind: "offset", offset: "12" }, false).to.number).toBe(12);
    expect(toReset({ ...EMPTY_FORM, kind: "time", time: "2026-01-02T03:04" }, false).to.number).toBe(
      new Date(2026, 0, 2, 3, 4).getTime(),
    );
  });

  it("reports invalid fields", () => {
    expect(validationError(EMPTY_FORM)).toBeNull();
    expect(validationError({ ...EMPTY_FORM, kind: "time" })).toContain("date");
    expect(validationError({ ...EMPTY_FORM, kind: "offset", offset: "-1" })).toContain("offset");
    expect(validationError({ ...EMPTY_FORM, kind: "shift", shift: "1.5" })).toContain("whole number");
  });
});
