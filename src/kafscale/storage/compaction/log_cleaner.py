"""`LogCleaner`: decides which records of a log compaction keeps, and builds segments of them. Pure.

It notes the latest offset of each key in the dirty part of a log, as far as memory allows, and then
rewrites segments in log order. As in Kafka, what it keeps of a batch keeps its offsets, and the
last sequence of its producer.

Invariants:

* A record is dropped only if a later one with the same key was noted, or if it is a tombstone below
  the end of what was noted whose delete horizon has passed. Below the clean end each key has one
  record, so nothing is left that such a tombstone deletes, provided that segments are replaced in
  log order.
* Records without a key are kept. Those of aborted transactions are dropped, whatever their keys
  are, and make no record obsolete; `transactions` says how long markers stay.
* A segment needs a record. If none is left of a group, the group grows: `Added.has_records`. Only
  at the end of what was noted the last record stays, and that is the latest of its key, a marker,
  or aborted; then its marker follows, and stays as well.
"""

from collections.abc import Iterator

from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.records import BatchView, inflate
from kafscale.records.batch import CONTROL_BIT, DELETE_HORIZON_BIT
from kafscale.records.batch_rewrite import rebuild_batch
from kafscale.records.checksum import Buffer
from kafscale.records.compaction import note_latest, select_kept
from kafscale.storage.compaction.messages import (
    Add,
    Added,
    Begin,
    Command,
    Done,
    Failed,
    Finish,
    Finished,
    Note,
    Noted,
    Parts,
    Reply,
)
from kafscale.storage.compaction.transactions import CleanedTransactions
from kafscale.storage.formats import segment
from kafscale.storage.formats.segment_output import SegmentOutput, damage_in
from kafscale.storage.log.state.transactions import AbortedTransaction


class LogCleaner:
    """Compacts one log after the other, as the commands say."""

    def __init__(self) -> None:
        self._cleaning = _Cleaning(Begin(0, 0, 0, 1))

    def handle(self, command: Command, data: Buffer) -> tuple[Reply, Parts]:
        """The reply to a command, and the parts of the segment that comes with it."""
        try:
            match command:
                case Begin():
                    self._cleaning = _Cleaning(command)
                    return Done(), ()
                case Note():
                    return self._cleaning.note(command, data), ()
                case Add():
                    return self._cleaning.add(command, data), ()
                case Finish():
                    return self._cleaning.finish()
        except DamagedObjectError as error:
            return Failed(error.key, error.reason), ()


class _Cleaning:
    """The compaction of one log."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin
        self._transactions = CleanedTransactions(
            AbortedTransaction(*each) for each in begin.aborted
        )
        self._latest: dict[bytes, int] = {}
        self._latest_bytes = 0
        self._noted_end = 0
        self._output: SegmentOutput | None = None
        self._source_count = 0
        self._is_changed = False
        self._count_before = 0
        self._count_after = 0

    def note(self, command: Note, data: Buffer) -> Noted:
        for batch in _batches(command, data):
            if not batch.attributes & CONTROL_BIT and self._transactions.aborted_at(batch) is None:
                with damage_in(command.key):
                    self._latest_bytes += note_latest(
                        inflate(batch), batch.count, batch.base_offset, self._latest
                    )
            self._noted_end = batch.next_offset
            if self._latest_bytes >= self._begin.memory_bytes_max:
                return Noted(self._noted_end, is_full=True)
        self._noted_end = command.end_offset
        return Noted(self._noted_end, is_full=False)

    def add(self, command: Add, data: Buffer) -> Added:
        if self._output is None:
            self._output = SegmentOutput(
                command.start_offset,
                command.end_offset,
                self._begin.now_ms,
                self._begin.index_interval_bytes,
            )
        self._output.extend(max(self._output.end_offset, command.end_offset))
        self._source_count += 1
        for batch in _batches(command, data):
            self._output.extend(max(self._output.end_offset, batch.next_offset))
            kept = self._cleaned(command, batch)
            self._count_before += batch.count
            self._is_changed |= kept is not batch
            if kept is None:
                self._output.drop(command.key, batch)
            else:
                self._count_after += kept.count
                # A copy, so that one small batch does not keep the whole segment in memory.
                self._output.append(
                    command.key, BatchView(bytes(batch.buffer)) if kept is batch else kept
                )
        output = self._output
        return Added(output.size_bytes, output.has_records, output.end_offset)

    def _cleaned(self, command: Add, batch: BatchView) -> BatchView | None:
        """What is left of a batch: itself, a smaller one, or None."""
        transactions, begin = self._transactions, self._begin
        with damage_in(command.key):
            if batch.attributes & CONTROL_BIT:
                return transactions.clean_marker(batch, begin.now_ms, begin.horizon_ms)
            transactions.note_data(batch)
            marker_offset = transactions.aborted_at(batch)
            if marker_offset is None:
                return self._latest_of(batch)
            assert self._output is not None
            before = self._output.last_batch
            return transactions.clean_aborted(batch, marker_offset, before, command.end_offset)

    def _latest_of(self, batch: BatchView) -> BatchView | None:
        """The records of a batch that are not obsolete."""
        begin = self._begin
        has_horizon = batch.attributes & DELETE_HORIZON_BIT != 0
        is_past = has_horizon and batch.base_timestamp_ms <= begin.now_ms
        records = inflate(batch)
        kept, count, has_tombstone = select_kept(
            records, batch.count, batch.base_offset, self._latest, self._noted_end if is_past else 0
        )
        if not count:
            return None
        needs_horizon = has_tombstone and not has_horizon
        if count == batch.count and not needs_horizon:
            return batch
        horizon_ms = begin.horizon_ms if needs_horizon else None
        return rebuild_batch(batch, records, kept, horizon_ms=horizon_ms)

    def finish(self) -> tuple[Finished, Parts]:
        if self._output is None:
            raise OperatingError("no segment was added")
        parts: Parts = ()
        index_bytes = 0
        if self._is_changed or self._source_count > 1:
            built = self._output.finish()
            parts, index_bytes = [*built.parts, built.index], len(built.index)
        finished = Finished(self._count_before, self._count_after, index_bytes)
        self._output = None
        self._is_changed = False
        self._source_count = self._count_before = self._count_after = 0
        return finished, parts


def _batches(command: Note | Add, data: Buffer) -> Iterator[BatchView]:
    """The batches of a segment that lie between two offsets, verified.

    A segment ends where the next one begins, even if it has more batches.
    """
    for batch in segment.read(command.key, data).batches:
        if command.start_offset < batch.next_offset and batch.base_offset < command.end_offset:
            yield batch
