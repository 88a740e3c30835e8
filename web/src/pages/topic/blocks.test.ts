import { describe, expect, it } from "vitest";

import type { Segment } from "../../api/contract";
import { blocksOf } from "./blocks";

function segment(baseOffset: number, lastOffset: number | null): Segment {
  return { baseOffset, lastOffset, sizeBytes: 10, createdAtMs: 0, key: `segment-${baseOffset}`, hasIndex: true };
}

const wal = { fromOffset: 300, toOffset: 310, recordCount: 10, objectCount: 1, sizeBytes: 5 };

describe("the bar of a partition", () => {
  it("goes from old segments to the WAL", () => {
    const blocks = blocksOf([segment(200, null), segment(100, 199)], wal, 0);
    expect(blocks.map((block) => [block.kind, block.fromOffset, block.toOffset])).toEqual([
      ["older", 0, 99],
      ["segment", 100, 199],
      ["segment", 200, 299],
      ["wal", 300, 309],
    ]);
  });

  it("is as wide as it is, even with a tiny block", () => {
    const blocks = blocksOf([segment(0, 9_999_999)], { ...wal, fromOffset: 10_000_000, toOffset: 10_000_001 }, 0);
    expect(blocks.reduce((sum, block) => sum + block.width, 0)).toBeCloseTo(100);
    expect(blocks[1]?.width).toBeGreaterThan(1);
  });

  it("is empty without records", () => {
    expect(blocksOf([], null, 0)).toEqual([]);
    expect(blocksOf([], { ...wal, recordCount: 0 }, 0)).toEqual([]);
  });
});
