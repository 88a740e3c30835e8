"""A model of partitions, which checks the storage engine's invariants.

A record that was acknowledged, or read, is known from then on: it stays at its offset until it is
deleted, and no other record ever replaces it. The model records what clients observe, and raises
`InvariantViolationError` as soon as two observations contradict each other.
"""

from collections.abc import Iterable, Sequence
from random import Random

from kafscale.records import BatchView, Record, iterate, split
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.text.topic_partition import topic_directory
from simulation.outcomes import InvariantViolationError, TransactionsModel

__all__ = ["NAMESPACE", "InvariantViolationError", "PartitionModel", "SimulatedTopic", "value_of"]

NAMESPACE = "simulated"


class SimulatedTopic:
    """A topic; one that is deleted and created again is another."""

    def __init__(self, name: str, number: int, partition_count: int, *, is_reused: bool) -> None:
        self.name = name
        self.id = number.to_bytes(16, "big")
        self.directory = topic_directory(name, self.id if is_reused else None)
        self.partitions = [PartitionModel(f"{name}/{index}") for index in range(partition_count)]
        self.is_deleted = False


def value_of(batch: BatchView, record: Record) -> bytes:
    """The value of a record, which is unique; those of markers get their offset."""
    if batch.is_control:
        return b"marker of %d at %d" % (batch.producer_id, record.offset)
    assert record.value is not None
    return record.value


class PartitionModel:
    """What is known of one partition."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._values: dict[int, bytes] = {}
        self._offsets_by_value: dict[bytes, int] = {}
        self._times_ms: dict[int, int] = {}
        self.known_end = 0
        """The offset after the last known record."""
        self.start_seen = 0
        """The highest observed log start offset."""
        self.deleted_to = 0
        """The acknowledged deletion offset: the log must not start below it."""
        self.delete_requested_to = 0
        """The highest requested deletion offset, acknowledged or not."""
        self.transactions = TransactionsModel()
        self._may_miss: set[int] = set()
        self._damaged: set[int] = set()

    def record(self, offset: int, value: bytes, timestamp_ms: int | None) -> None:
        """Record what a client has got acknowledged, or has read; its time may be unknown."""
        known = self._values.get(offset)
        if known is None:
            self._values[offset] = value
            if timestamp_ms is not None:
                self._times_ms[offset] = timestamp_ms
            self.known_end = max(self.known_end, offset + 1)
        elif known != value:
            raise InvariantViolationError(
                f"{self._name}: offset {offset} held {known!r}, and now {value!r}"
            )
        partition_key = self._offsets_by_value.setdefault(value, offset)
        # With its last segments, retention deletes what the log knew of their producers.
        # A damaged batch that is lost may be sent again, and then has another offset.
        is_gone = partition_key < self.start_seen or partition_key in self._damaged
        if partition_key != offset and not is_gone:
            raise InvariantViolationError(
                f"{self._name}: {value!r} is at offset {partition_key} and at {offset}"
            )

    def known_values(self) -> dict[int, bytes]:
        return dict(self._values)

    def allow_missing(self, offsets: Iterable[int]) -> None:
        """Records at these offsets may be gone from now on: compacted, or in a damaged object."""
        self._may_miss.update(offsets)

    def damage(self, offsets: range, *, is_durable: bool) -> None:
        """An object with these offsets was damaged: their records may be lost.

        Offsets of durable records are never used again. An object of the WAL is not durable before
        those of lower sequences are: then only what clients know counts.
        """
        self._damaged.update(offsets)
        self._may_miss.update(offsets)
        if is_durable:
            self.known_end = max(self.known_end, offsets.stop)

    def is_damaged(self, start_offset: int, end_offset: int) -> bool:
        """Whether all of these offsets were in damaged objects."""
        return all(offset in self._damaged for offset in range(start_offset, end_offset))

    def has_damage_after(self, offset: int) -> bool:
        return any(damaged >= offset for damaged in self._damaged)

    def has_damage(self) -> bool:
        """Whether a batch may be lost, so that its producer and the log differ in sequences."""
        return bool(self._damaged)

    def newest_ms_below(self, end_offset: int) -> int:
        """The largest known timestamp below an offset."""
        return max((ms for offset, ms in self._times_ms.items() if offset < end_offset), default=0)

    def may_miss(self, offset: int) -> bool:
        return offset in self._may_miss

    def random_record(self, random: Random) -> tuple[int, int] | None:
        """The offset of a random known record, and its timestamp."""
        if not self._times_ms:
            return None
        offset = random.choice(tuple(self._times_ms))
        return offset, self._times_ms[offset]

    def check_read(
        self, log: PartitionLog, offset: int, bytes_max: int, found: Sequence[memoryview], end: int
    ) -> None:
        """Record what a reader got, which must be complete, contiguous and durable."""
        batches = split(b"".join(found))
        if not batches:
            if end != offset and not self.is_damaged(offset, end):
                raise InvariantViolationError(
                    f"{self._name}: nothing was read from {offset} to {end}"
                )
            return
        size_bytes = sum(map(len, batches))
        if size_bytes > bytes_max and len(batches) > 1:
            raise InvariantViolationError(
                f"{self._name}: {size_bytes} bytes were read instead of {bytes_max}"
            )
        first = batches[0]
        is_first = first.base_offset <= offset or self.is_damaged(offset, first.base_offset)
        if not is_first or first.last_offset < offset:
            raise InvariantViolationError(
                f"{self._name}: a read from {offset} began with {batches[0]}"
            )
        if end > log.high_watermark:
            raise InvariantViolationError(
                f"{self._name}: read to {end}, above {log.high_watermark}"
            )
        self._check_contiguous(batches, end)
        for batch in batches:
            self.check_batch(batch)
            for record in iterate(batch):
                self.record(record.offset, value_of(batch, record), batch.max_timestamp_ms)

    def check_batch(self, batch: BatchView) -> None:
        """A batch holds a record at each of its offsets, unless compaction removed it."""
        if batch.count == batch.last_offset - batch.base_offset + 1:
            return
        missing = set(range(batch.base_offset, batch.next_offset))
        missing -= {record.offset for record in iterate(batch)}
        if lost := sorted(missing - self._may_miss):
            raise InvariantViolationError(f"{self._name}: {lost} are missing in {batch}")

    def _check_contiguous(self, batches: Iterable[BatchView], end: int) -> None:
        next_offset: int | None = None
        for batch in batches:
            batch.verify_checksum()
            if (
                next_offset is not None
                and batch.base_offset != next_offset
                and not self.is_damaged(next_offset, batch.base_offset)
            ):
                raise InvariantViolationError(f"{self._name}: {batch} follows offset {next_offset}")
            next_offset = batch.next_offset
        assert next_offset is not None
        if next_offset != end and not self.is_damaged(next_offset, end):
            raise InvariantViolationError(
                f"{self._name}: read to {next_offset}, but {end} was returned"
            )

    def check_opened(self, log: PartitionLog) -> None:
        """A log that was just opened has all known records, and no deleted ones."""
        self.start_seen = max(self.start_seen, log.start_offset)
        if log.high_watermark < self.known_end:
            raise InvariantViolationError(
                f"{self._name}: ends at {log.high_watermark}, not {self.known_end}"
            )
        if log.start_offset < self.deleted_to:
            raise InvariantViolationError(
                f"{self._name}: begins at {log.start_offset}, not {self.deleted_to}"
            )
        if log.end_offset != log.high_watermark:
            raise InvariantViolationError(f"{self._name}: {log} ends above its high watermark")

    def check_start(self, log: PartitionLog, now_ms: int) -> None:
        """The log starts where a deletion was requested, or where retention allows."""
        self.start_seen = max(self.start_seen, log.start_offset)
        settings = log.settings
        if log.start_offset > log.high_watermark:
            raise InvariantViolationError(f"{self._name}: {log} begins after its end")
        if settings.retention_bytes >= 0 or log.start_offset <= self.delete_requested_to:
            return
        limit_ms = now_ms - settings.retention_ms if settings.retention_ms >= 0 else -1
        for offset in range(self.delete_requested_to, log.start_offset):
            if offset not in self._damaged and self._times_ms.get(offset, -1) >= limit_ms:
                raise InvariantViolationError(
                    f"{self._name}: offset {offset} was deleted before its retention time"
                )

    def check_complete(self, start_offset: int, end_offset: int) -> None:
        """After everything was read, everything is known."""
        for offset in range(start_offset, end_offset):
            if offset not in self._values and offset not in self._may_miss:
                raise InvariantViolationError(f"{self._name}: offset {offset} cannot be read")
