/**
 * Where the records of a partition are, as blocks along its offsets: segments, then the WAL's tail.
 *
 * The law: a block is as wide as its share of the offsets, but never too narrow to be seen; so the
 * widths add up to 100 whatever the sizes are. Of many segments the newest are drawn one by one and
 * all older ones as one block.
 */

import type { Segment, WalTail } from "../../api/contract";

export interface Block {
  kind: "older" | "segment" | "wal";
  fromOffset: number;
  /** The last offset in it. */
  toOffset: number;
  sizeBytes: number | null;
  /** In per cent of the bar. */
  width: number;
}

const MINIMUM_WIDTH = 1.5;
const DRAWN_SEGMENTS = 30;

export function blocksOf(newestFirst: readonly Segment[], wal: WalTail | null, startOffset: number): Block[] {
  const drawn = withLastOffsets(newestFirst.slice(0, DRAWN_SEGMENTS), wal);
  const blocks: Block[] = drawn.map((segment) => ({ ...segment, kind: "segment", width: 0 }));
  const first = blocks[0];
  if (first && first.fromOffset > startOffset) {
    const older = { fromOffset: startOffset, toOffset: first.fromOffset - 1 };
    blocks.unshift({ kind: "older", ...older, sizeBytes: null, width: 0 });
  }
  if (wal && wal.recordCount > 0) {
    const tail = { fromOffset: wal.fromOffset, toOffset: wal.toOffset - 1, sizeBytes: wal.sizeBytes };
    blocks.push({ kind: "wal", ...tail, width: 0 });
  }
  return withWidths(blocks);
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

function withWidths(blocks: Block[]): Block[] {
  const counts = blocks.map((block) => Math.max(1, block.toOffset - block.fromOffset + 1));
  const total = counts.reduce((sum, count) => sum + count, 0);
  const wished = counts.map((count) => Math.max(MINIMUM_WIDTH, (100 * count) / total));
  const wishedTotal = wished.reduce((sum, width) => sum + width, 0);
  return blocks.map((block, index) => ({ ...block, width: (100 * (wished[index] ?? 0)) / wishedTotal }));
}
