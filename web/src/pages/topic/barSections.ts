/**
 * The sections of a partition's segment bar, by offset: segments, then the tail of the WAL.
 *
 * Invariant: the widths add up to 100. A section's width is its share of the offsets, with a visible minimum. The newest
 * segments are separate sections; all older ones are one section.
 */

import type { Segment, WalTail } from "../../api/contract";

export interface Section {
  kind: "older" | "segment" | "wal";
  fromOffset: number;
  /** The last offset, inclusive. */
  toOffset: number;
  sizeBytes: number | null;
  /** In percent of the bar. */
  width: number;
}

const MINIMUM_WIDTH = 1.5;
const DRAWN_SEGMENTS = 30;

export function sectionsOf(newestFirst: readonly Segment[], wal: WalTail | null, startOffset: number): Section[] {
  const drawn = withLastOffsets(newestFirst.slice(0, DRAWN_SEGMENTS), wal);
  const sections: Section[] = drawn.map((segment) => ({ ...segment, kind: "segment", width: 0 }));
  const first = sections[0];
  if (first && first.fromOffset > startOffset) {
    const older = { fromOffset: startOffset, toOffset: first.fromOffset - 1 };
    sections.unshift({ kind: "older", ...older, sizeBytes: null, width: 0 });
  }
  if (wal && wal.recordCount > 0) {
    const tail = { fromOffset: wal.fromOffset, toOffset: wal.toOffset - 1, sizeBytes: wal.sizeBytes };
    sections.push({ kind: "wal", ...tail, width: 0 });
  }
  return withWidths(sections);
}

interface Span {
  fromOffset: number;
  toOffset: number;
  sizeBytes: number;
}

/** Oldest first; a segment ends where the next begins, and the last one where the WAL begins. */
function withLastOffsets(newestFirst: readonly Segment[], wal: WalTail | null): Span[] {
  let next: number | null = wal ? wal.fromOffset : null;
  return newestFirst
    .map((segment) => {
      const toOffset = segment.lastOffset ?? (next === null ? segment.baseOffset : next - 1);
      next = segment.baseOffset;
      return { fromOffset: segment.baseOffset, toOffset, sizeBytes: segment.sizeBytes };
    })
    .reverse();
}

function withWidths(sections: Section[]): Section[] {
  const counts = sections.map((section) => Math.max(1, section.toOffset - section.fromOffset + 1));
  const total = counts.reduce((sum, count) => sum + count, 0);
  const widths = counts.map((count) => Math.max(MINIMUM_WIDTH, (100 * count) / total));
  const totalWidth = widths.reduce((sum, width) => sum + width, 0);
  return sections.map((section, index) => ({ ...section, width: (100 * (widths[index] ?? 0)) / totalWidth }));
}
