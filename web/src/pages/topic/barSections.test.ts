import { describe, expect, it } from "vitest";

import type { Segment } from "../../api/contract";
import { sectionsOf } from "./barSections";

function segment(baseOffset: number, lastOffset: number | null): Segment {
  return { baseOffset, lastOffset, sizeBytes: 10, createdAtMs: 0, key: `segment-${baseOffset}`, hasIndex: true };
}

const wal = { fromOffset: 300, toOffset: 310, recordCount: 10, objectCount: 1, sizeBytes: 5 };

describe("the sections of the segment bar", () => {
  it("go from old segments to the WAL", () => {
    const sections = sectionsOf([segment(200, null), segment(100, 199)], wal, 0);
    expect(sections.map((section) => [section.kind, section.fromOffset, section.toOffset])).toEqual([
      ["older", 0, 99],
      ["segment", 100, 199],
      ["segment", 200, 299],
      ["wal", 300, 309],
    ]);
  });

  it("add up to 100 percent, even with a tiny section", () => {
    const sections = sectionsOf([segment(0, 9_999_999)], { ...wal, fromOffset: 10_000_000, toOffset: 10_000_001 }, 0);
    expect(sections.reduce((sum, section) => sum + section.width, 0)).toBeCloseTo(100);
    expect(sections[1]?.width).toBeGreaterThan(1);
  });

  it("are empty without records", () => {
    expect(sectionsOf([], null, 0)).toEqual([]);
    expect(sectionsOf([], { ...wal, recordCount: 0 }, 0)).toEqual([]);
  });
});
