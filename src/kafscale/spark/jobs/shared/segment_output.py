"""A segment that a job makes: batches one after the other, their spans without a gap.

The laws: the segment spans exactly the offsets that it was begun and is finished with, and holds at
least one record. Where batches were left out, the one before takes over their span; at the
beginning, where there is none before, the first one does. The last batch so waits until it is known
what follows.
"""

from typing import Final

from kafscale.errors import DamagedObjectError
from kafscale.records import BatchView
from kafscale.spark.jobs.shared.batch_rewrite import SPAN_MAX, last_record_of, moved, widened
from kafscale.storage.formats import segment

_INDEX_INTERVAL_BYTES: Final = 2**31 - 1
"""Of the index that a builder makes beside, and that owners make anew."""


class Output:
    """One segment in the making."""

    def __init__(self, base_offset: int, end_offset: int, created_ms: int) -> None:
        assert end_offset - base_offset <= SPAN_MAX
        self._builder = segment.Builder(
            created_ms, _INDEX_INTERVAL_BYTES, compression=None, prior_max_timestamp_ms=None
        )
        self._base_offset = base_offset
        self._end_offset = end_offset
        self._waiting: BatchView | None = None
        self._left_out: tuple[str, BatchView] | None = None

    @property
    def next_offset(self) -> int:
        """The offset after all that is in the segment so far."""
        return self._base_offset if self._waiting is None else self._waiting.next_offset

    def append(self, key: str, batch: BatchView) -> None:
        """Add a batch of the object `key`; what is in the segment already is left out."""
        next_offset = self.next_offset
        if batch.next_offset <= next_offset:
            return
        if batch.next_offset > self._end_offset:
            raise DamagedObjectError(key, f"{batch!r} ends beyond {self._end_offset}")
        placed: BatchView | None = batch
        if batch.base_offset < next_offset or self._waiting is None:
            if batch.base_offset != next_offset:
                placed = moved(key, batch, next_offset)
        elif batch.base_offset > next_offset:
            self._waiting = widened(self._waiting, batch.base_offset - 1)
        if placed is None:
            self.leave_out(key, batch)
            return
        self._flush()
        self._waiting = placed

    def leave_out(self, key: str, batch: BatchView) -> None:
        """Take note of a batch that is not wanted: if none is, its last record has to stay."""
        if self._waiting is None and batch.count:
            self._left_out = (key, BatchView(bytes(batch.buffer)))

    def finish(self) -> segment.Built:
        """The segment, up to its end."""
        if self._waiting is None:
            assert self._left_out is not None, "a segment is made of something"
            key, batch = self._left_out
            self.append(key, last_record_of(key, batch))
        assert self._waiting is not None
        if self.next_offset < self._end_offset:
            self._waiting = widened(self._waiting, self._end_offset - 1)
        self._flush()
        return self._builder.finish()

    def _flush(self) -> None:
        if self._waiting is not None:
            self._builder.append(self._waiting)
