"""`PartitionLog`: the log of one partition, from its first segment to the newest record.

    log start ≤ rolled offset ≤ high watermark ≤ end offset

Segments hold everything below the rolled offset, the tail (memory, and the WAL) everything between
it and the high watermark, the WAL's open and unacknowledged objects the rest. The invariants:

* Offsets are given out here and nowhere else: contiguous, and never twice.
* The high watermark is the end of the longest durable prefix; no reader gets a record above it.
* A state change contains no `await`, so none is ever seen half done.

Making records durable is left to `flush`, making segments of them to `roll`, reading segments to
`reader`.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from kafscale.errors import NotOwnerError, OffsetOutOfRangeError
from kafscale.records import BatchView, TimestampType
from kafscale.records.batch import CONTROL_BIT, BatchHeader
from kafscale.storage.log.config import LogSettings
from kafscale.storage.log.state.batch_run import Run
from kafscale.storage.log.state.leader_epochs import LeaderEpochs
from kafscale.storage.log.state.producer_state import Producers
from kafscale.storage.log.state.segment_list import Segments
from kafscale.storage.log.state.tail import Tail, TailMemory


class Appended(msgspec.Struct, gc=False):
    """Where a batch came to lie, and what to wait for until it is durable."""

    base_offset: int
    timestamp_ms: int
    """The broker's time where the topic asks for it, else -1."""
    durable: "asyncio.Future[None] | None"
    """None if the batch is durable already."""


class Wal(Protocol):
    """What makes appended batches durable."""

    def append(  # noqa: PLR0917 - keywords cost time on the produce path.
        self,
        log: "PartitionLog",
        batch: memoryview,
        base_offset: int,
        last_offset: int,
        count: int,
        max_timestamp_ms: int,
    ) -> "asyncio.Future[None]": ...


class PartitionLog:
    """The log of one partition."""

    __slots__ = (
        "_is_held",
        "_waiting",
        "_watchers",
        "closed",
        "damaged_bases",
        "deleted",
        "end_offset",
        "epochs",
        "generation",
        "high_watermark",
        "leader_epoch",
        "oldest_unrolled_ms",
        "partition",
        "producers",
        "pruning",
        "replacing",
        "rolled_max_timestamp_ms",
        "rolling",
        "saved_offset",
        "segment_max_timestamp_ms",
        "segments",
        "settings",
        "start_offset",
        "tail",
        "topic",
        "topic_id",
        "wal",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        partition: int,
        *,
        settings: LogSettings,
        segments: Segments,
        memory: TailMemory,
        leader_epoch: int,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.settings = settings
        self.segments = segments
        self.leader_epoch = leader_epoch
        self.tail = Tail(memory, segments.end_offset)
        self.producers = Producers()
        self.epochs = LeaderEpochs()
        self.start_offset = segments.start_offset or 0
        self.high_watermark = segments.end_offset
        self.end_offset = segments.end_offset
        self.rolled_max_timestamp_ms: int | None = -1
        """The largest timestamp in any segment so far, deleted ones included; None if unknown."""
        self.segment_max_timestamp_ms = -1
        """The largest timestamp in the newest segment, if it was made in this life."""
        self.oldest_unrolled_ms: int | None = None
        """When the oldest record that waits for a segment became durable."""
        self.damaged_bases: set[int] = set()
        """Base offsets of damaged objects, which a roll may write over."""
        self.generation = 0
        """Grows when segments are about to be replaced under their names."""
        self.replacing: asyncio.Event | None = None
        """Set when what is being replaced can be read again."""
        self.saved_offset = 0
        """Up to where the metadata store knows that segments hold everything."""
        self.rolling = asyncio.Lock()
        """Held while a segment is made."""
        self.pruning = asyncio.Lock()
        """Held while segments are deleted or replaced, and while the log is handed over."""
        self.wal: Wal | None = None
        """Where appends go; None while the log is being recovered."""
        self.closed = False
        self.deleted = False
        """Whether the topic is gone, so that nobody needs what the WAL still holds of the log."""
        self._is_held = False
        self._watchers: set[Callable[[], None]] = set()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def __repr__(self) -> str:
        return (
            f"<PartitionLog {self.topic}/{self.partition} {self.start_offset}"
            f"..{self.high_watermark}..{self.end_offset}>"
        )

    def lead(self, wal: Wal) -> None:
        """Take appends from now on; the leader's epoch begins where the log ends."""
        if self.end_offset < self.start_offset:
            # Nothing is left of the log, but no offset is given out twice.
            self.resume(self.start_offset)
        self.wal = wal
        self.epochs.note(self.leader_epoch, self.end_offset)

    @property
    def is_saved(self) -> bool:
        """Whether the metadata store knows all segments."""
        return self.saved_offset >= self.tail.rolled_offset

    def hold(self) -> None:
        """Take no appends, because the log is to change hands; readers go on."""
        self._is_held = True

    def take_again(self) -> None:
        """Take appends after all: the log stays here."""
        self._is_held = False

    # --- writing ------------------------------------------------------------------------------

    def append(self, batch: BatchView, now_ms: int, header: BatchHeader | None = None) -> Appended:
        """Give a valid batch its offsets and hand it to the WAL; what is a duplicate is not.

        Who has read the header already may hand it in.
        """
        self.check_open()
        if self._is_held:
            self.check_kept()
        header = header or batch.header()
        if header.producer_id >= 0:
            duplicate = self.producers.check(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.last_sequence,
            )
            if duplicate is not None:
                return self._already(duplicate.base_offset, duplicate.last_offset)
        timestamp_ms = -1
        if self.settings.timestamp_type is TimestampType.LOG_APPEND_TIME:
            batch.stamp_append_time(now_ms)
            timestamp_ms = now_ms
        base_offset = self.end_offset
        last_offset = base_offset + header.last_offset_delta
        batch.stamp(base_offset, self.leader_epoch)
        assert self.wal is not None
        durable = self.wal.append(
            self,
            batch.buffer,
            base_offset,
            last_offset,
            header.record_count,
            header.max_timestamp_ms if timestamp_ms < 0 else timestamp_ms,
        )
        self._learn_producer(header, base_offset, last_offset, now_ms)
        self.end_offset = last_offset + 1
        if self._waiting and self._waiting[-1][1] is durable:
            self._waiting.pop()
        self._waiting.append((self.end_offset, durable))
        return Appended(base_offset, timestamp_ms, durable)

    def _already(self, base_offset: int, last_offset: int) -> Appended:
        for end_offset, durable in self._waiting:
            if last_offset < end_offset:
                return Appended(base_offset, -1, durable)
        return Appended(base_offset, -1, None)

    def learn(self, batch: BatchView, now_ms: int) -> None:
        """Take note of who wrote a batch that is read again, and under which leader."""
        header = batch.header()
        self._learn_producer(header, header.base_offset, batch.last_offset, now_ms)
        self.epochs.note(header.leader_epoch, header.base_offset)

    def _learn_producer(
        self, header: BatchHeader, base_offset: int, last_offset: int, now_ms: int
    ) -> None:
        """Take note of who wrote a batch.

        Producers expire by the time at which they were heard of, not by what they send: one that
        copies old records is as alive as any.
        """
        if header.producer_id >= 0 and not header.attributes & CONTROL_BIT:
            self.producers.record(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.last_sequence,
                base_offset,
                last_offset,
                now_ms,
                self.high_watermark,
            )

    def on_durable(self, run: Run, now_ms: int) -> None:
        """Let readers see a run; called by the WAL in the order of offsets."""
        if self.closed:
            return
        assert run.base_offset >= self.high_watermark
        self.tail.append(run)
        self.high_watermark = run.last_offset + 1
        if self.oldest_unrolled_ms is None:
            self.oldest_unrolled_ms = now_ms
        while self._waiting and self._waiting[0][0] <= self.high_watermark:
            del self._waiting[0]
        self._wake()

    def resume(self, offset: int) -> None:
        """Go on from an offset: everything below it that waits for no segment is, or was, in one.

        Offsets never go back: an offset that the log has passed changes nothing.
        """
        if not self.tail.unrolled_bytes:
            self.segments.end_offset = max(self.segments.end_offset, offset)
            self.tail.mark_rolled(self.segments.end_offset)
        self.high_watermark = self.end_offset = max(self.end_offset, offset)

    @property
    def recovery_offset(self) -> int:
        """From where on a log that is being opened needs what the WAL holds.

        Below, segments hold everything, or held it before it was deleted.
        """
        return max(self.end_offset, min(self.start_offset, self.saved_offset))

    def recover(self, run: Run, now_ms: int) -> None:
        """Take in a run that an earlier owner of this log left in the WAL."""
        batches = [batch for batch in run.batches() if batch.last_offset >= self.recovery_offset]
        if not batches:
            return
        for batch in batches:
            self.learn(batch, now_ms)
        base_offset = batches[0].base_offset
        if self.end_offset < base_offset <= self.start_offset:
            self.resume(base_offset)  # What lies before is deleted; the next segment begins here.
        self.end_offset = run.last_offset + 1
        self.on_durable(Run.of(batches), now_ms)

    def on_rolled(
        self,
        base_offset: int,
        next_offset: int,
        size_bytes: int,
        max_timestamp_ms: int,
        now_ms: int,
    ) -> None:
        """Note a new segment, which holds what was the oldest part of the tail."""
        self.segments.append(base_offset, next_offset, size_bytes)
        self.segment_max_timestamp_ms = max_timestamp_ms
        if self.rolled_max_timestamp_ms is not None:
            self.rolled_max_timestamp_ms = max(self.rolled_max_timestamp_ms, max_timestamp_ms)
        self.damaged_bases.discard(base_offset)
        self.tail.mark_rolled(next_offset)
        self.oldest_unrolled_ms = now_ms if self.tail.unrolled_bytes else None

    def begin_replacing(self) -> None:
        """Let readers of segments wait: what they have looked up is about to be wrong."""
        self.generation += 1
        self.replacing = asyncio.Event()

    def end_replacing(self) -> None:
        if self.replacing is not None:
            self.replacing.set()
            self.replacing = None

    def advance_start(self, offset: int) -> None:
        """Give up everything below the offset, as retention and DeleteRecords ask."""
        assert offset <= self.high_watermark
        if offset <= self.start_offset:
            return
        self.start_offset = offset
        self.epochs.trim_before(offset)

    def close(self, *, deleted: bool = False) -> None:
        """Serve nobody any more; those who wait are woken and find out."""
        self.closed = True
        self.deleted = deleted
        self.tail.clear()
        self.end_replacing()
        self._wake()

    def check_kept(self) -> None:
        if self._is_held:
            raise NotOwnerError(f"{self.topic}/{self.partition} is about to change hands")

    def check_open(self) -> None:
        if self.closed:
            raise NotOwnerError(f"{self.topic}/{self.partition} is not served here")

    # --- reading ------------------------------------------------------------------------------

    def check_readable(self, offset: int) -> None:
        self.check_open()
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRangeError(
                f"offset {offset} of {self.topic}/{self.partition} is outside of"
                f" {self.start_offset} to {self.end_offset}"
            )

    def in_tail(self, offset: int) -> bool:
        """Whether memory alone can answer a read from this offset."""
        start_offset = self.tail.start_offset
        return offset >= self.high_watermark or (
            start_offset is not None and offset >= start_offset
        )

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call the watcher whenever there is more to read, or the log is closed."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        self._watchers.discard(watcher)

    def _wake(self) -> None:
        for watcher in tuple(self._watchers):
            watcher()
