"""Builds one segment from batches whose offset ranges must follow each other without a gap.

Invariants: the segment spans exactly the offsets from its base offset to its end offset, and holds
at least one record. If batches are dropped, the batch before them takes over their offset range, or
the first batch if there is none before. The last batch is therefore pending until it is known what
follows it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import BatchView
from kafscale.records.batch_rewrite import SPAN_MAX, extend_batch, keep_last_record, rebase_batch
from kafscale.storage.formats import segment

INDEX_INTERVAL_BYTES_MAX: Final = 2**31 - 1
"""Few index entries, for jobs: the owner of the partition builds the index again."""


@contextmanager
def damage_in(key: str) -> Iterator[None]:
    """Name the object that has records which cannot be read."""
    try:
        yield
    except RecordsError as error:
        raise DamagedObjectError(key, str(error)) from error


class SegmentOutput:
    """A segment that is being built."""

    def __init__(
        self,
        base_offset: int,
        end_offset: int,
        created_ms: int,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES_MAX,
    ) -> None:
        assert end_offset - base_offset <= SPAN_MAX
        self._builder = segment.Builder(
            created_ms, index_interval_bytes, compression=None, prior_max_timestamp_ms=None
        )
        self._base_offset = base_offset
        self.end_offset = end_offset
        self._pending: BatchView | None = None
        self._last_dropped: tuple[str, BatchView] | None = None

    @property
    def next_offset(self) -> int:
        """The offset after the last batch so far."""
        return self._base_offset if self._pending is None else self._pending.next_offset

    @property
    def last_batch(self) -> BatchView | None:
        """The last batch so far; it takes over the offsets of those that are dropped after it."""
        return self._pending

    @property
    def has_records(self) -> bool:
        return self._pending is not None

    @property
    def size_bytes(self) -> int:
        """About the size of the segment if it were finished now."""
        return self._builder.size_bytes + (0 if self._pending is None else len(self._pending))

    def extend(self, end_offset: int) -> None:
        """Let the segment span more offsets."""
        assert self.end_offset <= end_offset <= self._base_offset + SPAN_MAX
        self.end_offset = end_offset

    def append(self, key: str, batch: BatchView) -> None:
        """Add a batch of the object `key`, without offsets that the segment already has."""
        next_offset = self.next_offset
        if batch.next_offset <= next_offset:
            return
        if batch.next_offset > self.end_offset:
            raise DamagedObjectError(key, f"{batch!r} ends beyond {self.end_offset}")
        added: BatchView | None = batch
        if batch.base_offset < next_offset or self._pending is None:
            if batch.base_offset != next_offset:
                with damage_in(key):
                    added = rebase_batch(batch, next_offset)
        elif batch.base_offset > next_offset:
            self._pending = extend_batch(self._pending, batch.base_offset - 1)
        if added is None:
            self.drop(key, batch)
            return
        self._flush()
        self._pending = added

    def drop(self, key: str, batch: BatchView) -> None:
        """Drop a batch. If all batches are dropped, the last record of the last one stays."""
        if self._pending is None and batch.count:
            self._last_dropped = (key, BatchView(bytes(batch.buffer)))

    def finish(self) -> segment.Built:
        """Return the segment, extended to its end offset."""
        if self._pending is None:
            assert self._last_dropped is not None, "a segment needs at least one batch"
            key, batch = self._last_dropped
            with damage_in(key):
                last = keep_last_record(batch)
            self.append(key, last)
        assert self._pending is not None
        if self.next_offset < self.end_offset:
            self._pending = extend_batch(self._pending, self.end_offset - 1)
        self._flush()
        return self._builder.finish()

    def _flush(self) -> None:
        if self._pending is not None:
            self._builder.append(self._pending)
