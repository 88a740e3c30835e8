import { expect, it } from "vitest";

import { rangesOf } from "./ranges";

it("joins consecutive numbers", () => {
  expect(rangesOf([])).toBe("");
  expect(rangesOf([3])).toBe("3");
  expect(rangesOf([7, 1, 0, 2, 9, 10])).toBe("0–2, 7, 9–10");
});
