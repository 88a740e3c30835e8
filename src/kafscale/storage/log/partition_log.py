"""`PartitionLog`: the log of one partition, from its first segment to the newest record.

    log start offset ≤ rolled offset ≤ high watermark ≤ end offset

Segments hold everything below the rolled offset. The tail (memory, backed by the WAL) holds the
records from there to the high watermark. The rest is in WAL objects that are open or not yet
acknowledged.

Invariants:

* Only this class assigns offsets; they are contiguous and never reused.
* The high watermark is the end of the longest durable prefix; readers get no record above it.
* The last stable offset is at most the high watermark, and never moves back.
* State changes contain no `await`, so other tasks never see one half done.

`wal.writer` makes records durable, `segments.segment_writer` rolls them into segments,
`read.log_reader` reads segments.
"""

import asyncio
from collections.abc import Callable

from kafscale.errors import NotOwnerError, OffsetOutOfRangeError
from kafscale.records import BatchView, TimestampType
from kafscale.records.batch import TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT, BatchHeader
from kafscale.records.control import ControlType, EndMarker, build_end_marker, read_end_marker
from kafscale.storage.log.appends import AppendResult, PendingAppends, Wal
from kafscale.storage.log.config import LogSettings
from kafscale.storage.log.state.batch_run import BatchRun
from kafscale.storage.log.state.leader_epochs import LeaderEpochs
from kafscale.storage.log.state.producer_state import Duplicate, Producers
from kafscale.storage.log.state.segment_list import SegmentList
from kafscale.storage.log.state.tail import Tail, TailMemory
from kafscale.storage.log.state.transaction_rules import OF_TRANSACTIONS, TransactionRules
from kafscale.storage.log.state.transaction_state import Transactions, VerificationGuard


class PartitionLog:
    """The log of one partition."""

    __slots__ = (
        "_appends_paused",
        "_pending_appends",
        "_rules",
        "_watchers",
        "closed",
        "directory",
        "end_offset",
        "epochs",
        "high_watermark",
        "leader_epoch",
        "oldest_unrolled_ms",
        "partition",
        "producers",
        "roll_lock",
        "rolled_max_timestamp_ms",
        "saved_offset",
        "segment_max_timestamp_ms",
        "segments",
        "segments_lock",
        "settings",
        "start_offset",
        "swap_count",
        "swap_finished",
        "tail",
        "topic",
        "topic_id",
        "transactions",
        "wal",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        partition: int,
        *,
        settings: LogSettings,
        segments: SegmentList,
        memory: TailMemory,
        leader_epoch: int,
        directory: str = "",
    ) -> None:
        """`directory` is the part of object keys that stands for the topic, by default its name."""
        self.topic = topic
        self.topic_id = topic_id
        self.directory = directory or topic
        self.partition = partition
        self.settings = settings
        self.segments = segments
        self.leader_epoch = leader_epoch
        self.tail = Tail(memory, segments.end_offset)
        self.restore_producers(Producers(), Transactions())
        self.epochs = LeaderEpochs()
        self.start_offset = segments.start_offset or 0
        self.high_watermark = segments.end_offset
        self.end_offset = segments.end_offset
        self.rolled_max_timestamp_ms: int | None = -1
        """The largest timestamp of all segments, including deleted ones; None if unknown."""
        self.segment_max_timestamp_ms = -1
        """The largest timestamp in the newest segment, if this broker session rolled it."""
        self.oldest_unrolled_ms: int | None = None
        """When the oldest record that is not in a segment became durable."""
        self.swap_count = 0
        """Incremented when segments are about to be replaced under the same keys."""
        self.swap_finished: asyncio.Event | None = None
        """Set when a swap in progress ends; None if there is none."""
        self.saved_offset = 0
        """The offset up to which the metadata store knows the segments."""
        self.roll_lock = asyncio.Lock()
        """Held while a segment is rolled."""
        self.segments_lock = asyncio.Lock()
        """Held while segments are deleted or replaced, and while the log is transferred."""
        self.wal: Wal | None = None
        """Receives appends; None while the log is being recovered."""
        self.closed = False
        self._appends_paused = False
        self._watchers: set[Callable[[PartitionLog], None]] = set()
        self._pending_appends = PendingAppends()

    def __repr__(self) -> str:
        return (
            f"<PartitionLog {self.topic}/{self.partition} {self.start_offset}"
            f"..{self.high_watermark}..{self.end_offset}>"
        )

    def restore_producers(self, producers: Producers, transactions: Transactions) -> None:
        """Continue with the state at the end of the last segment."""
        self.producers = producers
        self.transactions = transactions
        self._rules = TransactionRules(producers, transactions)

    def become_leader(self, wal: Wal) -> None:
        """Accept appends from now on; this leader epoch begins at the log's end offset."""
        if self.end_offset < self.start_offset:
            # All records were deleted, but offsets are never reused.
            self.skip_to(self.start_offset)
        self.wal = wal
        self.epochs.assign(self.leader_epoch, self.end_offset)

    @property
    def is_saved(self) -> bool:
        """Whether the metadata store knows all segments."""
        return self.saved_offset >= self.tail.rolled_offset

    def pause_appends(self) -> None:
        """Reject appends during a transfer to another broker; reads continue."""
        self._appends_paused = True

    def resume_appends(self) -> None:
        """Accept appends again, because the transfer did not happen."""
        self._appends_paused = False

    # --- writing ------------------------------------------------------------------------------

    def append(
        self,
        batch: BatchView,
        now_ms: int,
        header: BatchHeader | None = None,
        guard: VerificationGuard | None = None,
    ) -> AppendResult:
        """Assign offsets to a valid batch and pass it to the WAL, unless it is a duplicate.

        `header` saves decoding it again if the caller already has it. The first batch of a
        transaction needs a guard: see `needs_verification`.
        """
        self.check_open()
        if self._appends_paused:
            self.check_not_paused()
        header = header or batch.header()
        marker = None
        if header.producer_id >= 0:
            if header.attributes & TRANSACTIONAL_BIT or self.transactions.open:
                marker = read_end_marker(batch)
                duplicate = self._rules.check(header, marker, guard)
            else:
                duplicate = self.producers.check(
                    header.producer_id,
                    header.producer_epoch,
                    header.base_sequence,
                    header.last_sequence,
                )
            if duplicate is not None:
                return self._duplicate_result(duplicate)
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
        if header.producer_id >= 0:
            if header.attributes & OF_TRANSACTIONS:
                self._rules.record(header, marker, base_offset, now_ms, self.high_watermark)
            else:
                self.producers.record_header(header, base_offset, now_ms, self.high_watermark)
        self.end_offset = last_offset + 1
        self._pending_appends.add(self.end_offset, durable)
        return AppendResult(base_offset, timestamp_ms, durable)

    def _duplicate_result(self, duplicate: Duplicate) -> AppendResult:
        """The result of the first append of a batch."""
        is_append_time = self.settings.timestamp_type is TimestampType.LOG_APPEND_TIME
        timestamp_ms = duplicate.timestamp_ms if is_append_time else -1
        durable = self._pending_appends.find(duplicate.last_offset)
        return AppendResult(duplicate.base_offset, timestamp_ms, durable)

    def append_end_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        control_type: ControlType,
        coordinator_epoch: int,
        now_ms: int,
    ) -> AppendResult:
        """Append the marker of a transaction, whether the producer has one open here or not."""
        marker = build_end_marker(
            producer_id, producer_epoch, control_type, coordinator_epoch, now_ms
        )
        return self.append(BatchView(marker), now_ms)

    def update_state(
        self, header: BatchHeader, now_ms: int, marker: EndMarker | None = None
    ) -> None:
        """Update producer state and leader epochs from a batch that is replayed, so is durable.

        `marker` is the content of a control batch.
        """
        if header.attributes & TIMESTAMP_TYPE_BIT:
            now_ms = header.max_timestamp_ms  # When the batch was appended.
        base_offset = header.base_offset
        if header.producer_id >= 0:
            durable_to = base_offset + header.last_offset_delta + 1
            self._rules.record(header, marker, base_offset, now_ms, durable_to)
        self.epochs.assign(header.leader_epoch, base_offset)

    def needs_verification(self, header: BatchHeader) -> bool:
        """Whether the coordinator has to confirm the transaction of a batch before its append."""
        return self._rules.needs_verification(header)

    def start_verification(
        self, producer_id: int, epoch: int, base_sequence: int, *, adds_partition: bool
    ) -> VerificationGuard:
        """Return the guard for the append, before the coordinator is asked about the transaction.

        `adds_partition`: the coordinator adds this partition to the transaction (KIP-890).
        """
        return self._rules.start_verification(
            producer_id, epoch, base_sequence, adds_partition=adds_partition
        )

    def advance_high_watermark(self, run: BatchRun, now_ms: int) -> None:
        """Make a run visible to readers; the WAL calls this in offset order."""
        if self.closed:
            return
        assert run.base_offset >= self.high_watermark
        self.tail.append(run)
        self.high_watermark = run.last_offset + 1
        if self.transactions.first_unstable_offset is not None:
            self.transactions.advance_high_watermark(self.high_watermark)
        if self.oldest_unrolled_ms is None:
            self.oldest_unrolled_ms = now_ms
        self._pending_appends.drop_below(self.high_watermark)
        self._notify_watchers()

    def skip_to(self, offset: int) -> None:
        """Continue the log at an offset; records below it are, or were, in segments.

        Offsets never move back: an offset below the log's end changes nothing.
        """
        if not self.tail.unrolled_bytes:
            self.segments.end_offset = max(self.segments.end_offset, offset)
            self.tail.mark_rolled(self.segments.end_offset)
        self.high_watermark = self.end_offset = max(self.end_offset, offset)
        self.transactions.advance_high_watermark(self.high_watermark)

    @property
    def recovery_offset(self) -> int:
        """The offset from which a log that is being opened needs records from the WAL.

        Records below it are in segments, or were before they were deleted.
        """
        return max(self.end_offset, min(self.start_offset, self.saved_offset))

    def recover(self, run: BatchRun, now_ms: int) -> None:
        """Append a run that a former owner left in the WAL, from `recovery_offset` or later.

        `update_state` was called for its batches.
        """
        if self.end_offset < run.base_offset <= self.start_offset:
            # Records before it are deleted; a new segment begins here.
            self.skip_to(run.base_offset)
        self.end_offset = run.last_offset + 1
        self.advance_high_watermark(run, now_ms)

    def on_rolled(
        self,
        base_offset: int,
        next_offset: int,
        size_bytes: int,
        max_timestamp_ms: int,
        now_ms: int,
    ) -> None:
        """Record a new segment that holds the oldest part of the tail."""
        self.segments.append(base_offset, next_offset, size_bytes, max_timestamp_ms)
        self.segment_max_timestamp_ms = max_timestamp_ms
        if self.rolled_max_timestamp_ms is not None:
            self.rolled_max_timestamp_ms = max(self.rolled_max_timestamp_ms, max_timestamp_ms)
        self.tail.mark_rolled(next_offset)
        self.transactions.mark_rolled(next_offset, self.tail.start_offset)
        if not self.tail.unrolled_bytes and next_offset < self.high_watermark:
            # The offsets up to the high watermark are missing, because of damage.
            self.segments.end_offset = self.high_watermark
            self.tail.mark_rolled(self.high_watermark)
        self.oldest_unrolled_ms = now_ms if self.tail.unrolled_bytes else None

    def begin_swap(self) -> None:
        """Make segment readers wait: positions from indexes become invalid."""
        self.swap_count += 1
        self.swap_finished = asyncio.Event()

    def end_swap(self) -> None:
        if self.swap_finished is not None:
            self.swap_finished.set()
            self.swap_finished = None

    def advance_start(self, offset: int) -> None:
        """Raise the log start offset, for retention and DeleteRecords."""
        assert offset <= self.high_watermark
        if offset <= self.start_offset:
            return
        self.start_offset = offset
        self.epochs.truncate_from_start(offset)

    def close(self) -> None:
        """Stop serving; waiting readers wake up and find the log closed."""
        self.closed = True
        self.tail.clear()
        self.end_swap()
        self._notify_watchers()

    def check_not_paused(self) -> None:
        if self._appends_paused:
            raise NotOwnerError(
                f"{self.topic}/{self.partition} is being transferred to another broker"
            )

    def check_open(self) -> None:
        if self.closed:
            raise NotOwnerError(f"{self.topic}/{self.partition} is not served by this broker")

    # --- reading ------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """The end of what readers of committed records get: below it, no transaction is open."""
        first_unstable = self.transactions.first_unstable_offset
        if first_unstable is None or first_unstable >= self.high_watermark:
            return self.high_watermark
        return max(first_unstable, self.start_offset)

    def check_readable(self, offset: int) -> None:
        self.check_open()
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRangeError(
                f"offset {offset} of {self.topic}/{self.partition} is out of range"
                f" {self.start_offset} to {self.end_offset}"
            )

    def in_tail(self, offset: int) -> bool:
        """Whether a read from this offset can be served from memory."""
        start_offset = self.tail.start_offset
        return offset >= self.high_watermark or (
            start_offset is not None and offset >= start_offset
        )

    def watch(self, watcher: "Callable[[PartitionLog], None]") -> None:
        """Call `watcher` with this log whenever there are new records, or the log is closed.

        A WAL object may have records of thousands of logs, each with a call: it must be short.
        """
        self._watchers.add(watcher)

    def unwatch(self, watcher: "Callable[[PartitionLog], None]") -> None:
        self._watchers.discard(watcher)

    def _notify_watchers(self) -> None:
        for watcher in tuple(self._watchers):
            watcher(self)
