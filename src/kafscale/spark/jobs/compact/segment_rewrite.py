"""The second phase of compaction: tasks rewrite segments without obsolete records.

Invariants: a batch that loses no record is copied unchanged; a batch that loses some is rebuilt; a
batch that loses all is dropped. Records without a key are kept. Kept tombstones get a delete
horizon unless they have one. Transactions are compacted as by brokers, see
`storage.compaction.transactions`; of those that began in earlier groups, batches are taken to
exist. A single segment that would not change is not staged.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kafscale.records import BatchView
from kafscale.records.batch import CONTROL_BIT, DELETE_HORIZON_BIT
from kafscale.records.batch_rewrite import HORIZON_MS_MAX, rebuild_batch
from kafscale.spark.codec.aborted_batches import AbortedBatches
from kafscale.spark.jobs.compact import surviving_offsets
from kafscale.spark.jobs.compact.surviving_offsets import TargetSegment, survivors_key
from kafscale.spark.jobs.shared import staging
from kafscale.spark.jobs.shared.record_scan import RecordScan, chunk_batches, scan
from kafscale.spark.jobs.shared.segment_group import SegmentGroup
from kafscale.spark.jobs.shared.staging import StagedSegment
from kafscale.spark.read.location import Location
from kafscale.spark.read.slice_reader import BatchGroup, SliceReader
from kafscale.storage.compaction.transactions import CleanedTransactions
from kafscale.storage.formats import segment
from kafscale.storage.formats.segment_output import SegmentOutput, damage_in
from kafscale.storage.log.state.transactions import TransactionSpans
from kafscale.storage.objects.blocking import BlockingObjectStore

JOB: Final = "compact"


class SegmentRewrite(msgspec.Struct, frozen=True):
    """What one task rewrites."""

    group: SegmentGroup
    counts: tuple[int, ...]
    """The number of surviving records of each segment."""
    delete_retention_ms: int
    aborted: TransactionSpans | None = None
    """The aborted transactions that touch the group."""
    opened: tuple[int, ...] = ()
    """The producers whose transactions began before the group."""


def rewrite_group(
    location: Location, run_id: str, now_ms: int, item: SegmentRewrite
) -> StagedSegment | None:
    """Rewrite a group as one segment and stage it; None if nothing would change."""
    group = item.group
    with location.open() as store:
        checksums = store.run(lambda objects: staging.read_checksums(objects, group))
        survivors = _load_survivors(store, location.namespace, run_id, item)
        rewriter = SegmentRewriter(item, survivors, now_ms)
        for read in SliceReader(store, location.namespace).read(group.slice):
            rewriter.add(read)
        if not rewriter.is_changed and len(group.sources) == 1:
            return None
        has_survivors = rewriter.has_survivors
        built = rewriter.finish()
        name = staging.staging_name(JOB, run_id, group.base_offset)
        return staging.stage(
            store,
            location.namespace,
            name,
            group,
            built,
            records_before=rewriter.count_before,
            checksums=checksums,
            has_survivors=has_survivors,
        )


def _load_survivors(
    store: BlockingObjectStore, namespace: str, run_id: str, item: SegmentRewrite
) -> NDArray[np.int64]:
    """Return all surviving offsets of a group."""
    loaded = []
    for source, count in zip(item.group.sources, item.counts, strict=True):
        target = TargetSegment(
            item.group.topic, item.group.partition, source.start_offset, source.end_offset
        )
        key = survivors_key(namespace, run_id, target)
        loaded.append(surviving_offsets.load(store, key, target, count))
    return np.concatenate(loaded)


class SegmentRewriter:
    """Builds one segment from the surviving records of a group."""

    def __init__(self, item: SegmentRewrite, survivors: NDArray[np.int64], now_ms: int) -> None:
        """`survivors` are the ascending offsets of the records with a key that are kept."""
        self._end_offset = item.group.end_offset
        self._output = SegmentOutput(item.group.base_offset, self._end_offset, now_ms)
        self._survivors = survivors
        self._now_ms = now_ms
        self._horizon_ms = min(now_ms + item.delete_retention_ms, HORIZON_MS_MAX)
        self._aborted = AbortedBatches(item.aborted)
        self._transactions = CleanedTransactions(item.aborted or (), item.opened)
        self.is_changed = False
        self.count_before = 0

    def add(self, read: BatchGroup) -> None:
        """Rewrite the next batches of the log."""
        for batches in chunk_batches(read.batches):
            for batch, rewritten in self._rewrite(read.key, batches):
                self.count_before += batch.count
                if rewritten is None:
                    self._output.drop(read.key, batch)
                elif rewritten is batch:
                    # A copy, so that one small batch does not keep the whole read buffer alive.
                    self._output.append(read.key, BatchView(bytes(batch.buffer)))
                else:
                    self._output.append(read.key, rewritten)
                self.is_changed |= rewritten is not batch

    @property
    def has_survivors(self) -> bool:
        """Whether a record is kept so far."""
        return self._output.has_records

    def finish(self) -> segment.Built:
        return self._output.finish()

    def _rewrite(
        self, key: str, batches: Sequence[BatchView]
    ) -> Iterator[tuple[BatchView, BatchView | None]]:
        """Return each batch and its replacement: itself, a rebuilt batch, or None."""
        records = scan(key, batches, self._aborted)
        is_kept = ~records.has_key | self._survives(records.offsets)
        is_tombstone = is_kept & records.has_key & ~records.has_value
        kept_counts = records.count_per_batch(is_kept).tolist()
        tombstone_counts = records.count_per_batch(is_tombstone).tolist()
        index = 0
        for batch in batches:
            attributes = batch.attributes
            if attributes & CONTROL_BIT:
                yield batch, self._clean_marker(key, batch)
                continue
            self._transactions.note_data(batch)
            marker_offset = self._transactions.aborted_at(batch)
            if marker_offset is not None:
                yield batch, self._clean_aborted(key, batch, marker_offset)
                continue
            has_horizon = attributes & DELETE_HORIZON_BIT
            needs_horizon = tombstone_counts[index] > 0 and not has_horizon
            if kept_counts[index] == batch.count and not needs_horizon:
                yield batch, batch
            elif kept_counts[index]:
                kept = is_kept[records.bounds[index] : records.bounds[index + 1]]
                yield batch, self._rebuild(key, records, index, kept, needs_horizon=needs_horizon)
            else:
                yield batch, None
            index += 1

    def _clean_marker(self, key: str, batch: BatchView) -> BatchView | None:
        with damage_in(key):
            return self._transactions.clean_marker(batch, self._now_ms, self._horizon_ms)

    def _clean_aborted(self, key: str, batch: BatchView, marker_offset: int) -> BatchView | None:
        before = self._output.last_batch
        with damage_in(key):
            return self._transactions.clean_aborted(batch, marker_offset, before, self._end_offset)

    def _survives(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some offsets are survivors."""
        if not self._survivors.size:
            return np.zeros(offsets.size, np.bool_)
        indexes = np.searchsorted(self._survivors, offsets)
        indexes[indexes == self._survivors.size] = 0
        return np.equal(self._survivors[indexes], offsets)

    def _rebuild(
        self,
        key: str,
        records: RecordScan,
        index: int,
        kept: NDArray[np.bool_],
        *,
        needs_horizon: bool,
    ) -> BatchView:
        start = int(records.entries[index]["position"])
        end = start + int(records.entries[index]["size_bytes"])
        with damage_in(key):
            return rebuild_batch(
                records.batches[index],
                records.source[start:end].tobytes(),
                kept.tobytes(),
                horizon_ms=self._horizon_ms if needs_horizon else None,
            )
