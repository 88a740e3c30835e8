"""The second phase of compaction, in a task: segments rewritten without what is obsolete.

The laws: a batch of which everything stays is copied as it is. Where something goes, the batch is
rebuilt; where nothing is left of it, it vanishes. Records without a key, control batches and
transactions stay. Marks of deletion that stay get their horizon, if they have none yet. Nothing is
staged where one segment would only become the same again.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kafscale.records import BatchView
from kafscale.records.batch import CONTROL_BIT, DELETE_HORIZON_BIT, TRANSACTIONAL_BIT
from kafscale.spark.jobs.compact import surviving_offsets
from kafscale.spark.jobs.compact.surviving_offsets import Target, survivors_key
from kafscale.spark.jobs.merge.grouping import Group
from kafscale.spark.jobs.shared import staging
from kafscale.spark.jobs.shared.batch_rewrite import HORIZON_MS_MAX, rebuilt
from kafscale.spark.jobs.shared.record_scan import Scanned, chunks, scan
from kafscale.spark.jobs.shared.segment_output import Output
from kafscale.spark.jobs.shared.staging import Staged
from kafscale.spark.read.slice_reader import BatchGroup, SliceReader
from kafscale.spark.source.location import Location
from kafscale.storage.formats import segment
from kafscale.storage.objects.blocking import BlockingObjectStore

JOB: Final = "compact"


class Rewrite(msgspec.Struct, frozen=True):
    """What one task rewrites."""

    group: Group
    counts: tuple[int, ...]
    """How many records survive in each of its segments."""
    delete_retention_ms: int


def rewrite_one(location: Location, run_id: str, now_ms: int, item: Rewrite) -> Staged | None:
    """Rewrite a group and stage what becomes of it; None if that is the same."""
    group = item.group
    with location.open() as store:
        checksums = store.run(lambda objects: staging.checksums(objects, group))
        rewriter = Rewriter(
            group,
            _surviving(store, location.namespace, run_id, item),
            now_ms,
            min(now_ms + item.delete_retention_ms, HORIZON_MS_MAX),
        )
        for found in SliceReader(store, location.namespace).read(group.slice):
            rewriter.take(found)
        if not rewriter.is_changed and len(group.sources) == 1:
            return None
        built = rewriter.finish()
        job = staging.job_name(JOB, run_id, group.base_offset)
        key = staging.staged_key(location.namespace, job, group)
        store.put(key, built.parts, create=False)
    return Staged(
        group,
        job,
        key,
        built.size_bytes,
        segment.decode_footer(key, built.parts[-1]).checksum,
        built.count,
        rewriter.count_before,
        checksums or (),
    )


def _surviving(
    store: BlockingObjectStore, namespace: str, run_id: str, item: Rewrite
) -> NDArray[np.int64]:
    """All offsets that survive in a group."""
    loaded = []
    for source, count in zip(item.group.sources, item.counts, strict=True):
        target = Target(
            item.group.topic, item.group.partition, source.start_offset, source.end_offset
        )
        key = survivors_key(namespace, run_id, target)
        loaded.append(surviving_offsets.load(store, key, target, count))
    return np.concatenate(loaded)


class Rewriter:
    """Makes one segment of what survives."""

    def __init__(
        self, group: Group, surviving: NDArray[np.int64], now_ms: int, horizon_ms: int
    ) -> None:
        """`surviving` are the offsets, ascending, of records that have a key and stay."""
        self._output = Output(group.base_offset, group.end_offset, now_ms)
        self._surviving = surviving
        self._horizon_ms = horizon_ms
        self.is_changed = False
        self.count_before = 0

    def take(self, found: BatchGroup) -> None:
        """Rewrite batches that follow those before."""
        for several in chunks(found.batches):
            for batch, made in self._judged(found.key, several):
                self.count_before += batch.count
                if made is None:
                    self._output.leave_out(found.key, batch)
                elif made is batch:
                    # A copy, because what was read together is large, and little of it may stay.
                    self._output.append(found.key, BatchView(bytes(batch.buffer)))
                else:
                    self._output.append(found.key, made)
                self.is_changed |= made is not batch

    def finish(self) -> segment.Built:
        return self._output.finish()

    def _judged(
        self, key: str, batches: Sequence[BatchView]
    ) -> Iterator[tuple[BatchView, BatchView | None]]:
        """Each batch, and what becomes of it."""
        found = scan(key, batches)
        is_kept = (
            ~found.has_key
            | self._survives(found.offsets)
            | found.per_row(found.entries["attributes"] & TRANSACTIONAL_BIT != 0)
        )
        kept_counts = found.per_batch(is_kept).tolist()
        mark_counts = found.per_batch(is_kept & found.has_key & ~found.has_value).tolist()
        index = 0
        for batch in batches:
            attributes = batch.attributes
            if attributes & CONTROL_BIT:
                yield batch, batch
                continue
            has_horizon = attributes & (DELETE_HORIZON_BIT | TRANSACTIONAL_BIT)
            needs_horizon = mark_counts[index] > 0 and not has_horizon
            if kept_counts[index] == batch.count and not needs_horizon:
                yield batch, batch
            elif kept_counts[index]:
                kept = is_kept[found.bounds[index] : found.bounds[index + 1]]
                yield batch, self._rebuilt(key, found, index, kept, needs_horizon=needs_horizon)
            else:
                yield batch, None
            index += 1

    def _survives(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some offsets are among the survivors."""
        if not self._surviving.size:
            return np.zeros(offsets.size, np.bool_)
        places = np.searchsorted(self._surviving, offsets)
        places[places == self._surviving.size] = 0
        return np.equal(self._surviving[places], offsets)

    def _rebuilt(
        self, key: str, found: Scanned, index: int, kept: NDArray[np.bool_], *, needs_horizon: bool
    ) -> BatchView:
        entry = found.entries[index]
        return rebuilt(
            key,
            found.batches[index],
            found.source,
            int(entry["position"]),
            int(entry["size_bytes"]),
            kept,
            horizon_ms=self._horizon_ms if needs_horizon else None,
        )
