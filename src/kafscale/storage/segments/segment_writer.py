"""Rolling: writes the oldest part of a log's tail as a segment and its index.

`roll_scheduler` decides when. Invariants:

* A segment holds only durable records and begins where the last one ended. It is create-only: if
  its key exists, a former owner of this log wrote it, and it is read and adopted. If it is damaged
  or holds other records, a copy is kept in quarantine before it is replaced.
* The index is derived data and may be overwritten. A crash between the two PUTs leaves a segment
  without an index, which recovery rebuilds.
* A roll that fails changes nothing in memory, and can be tried again at any time.
* A WAL object is deleted only after the segments with its records are complete.
* Before the first segment with transactions, the object `transactions` of the partition is written:
  by it, readers of the bucket know which indexes to read.
"""

import asyncio
import enum
from collections.abc import Awaitable, Callable
from contextlib import suppress
from operator import attrgetter
from random import Random
from typing import Final, TypeVar

import msgspec

from kafscale.aio.backoff import Backoff
from kafscale.errors import DamagedObjectError, NotOwnerError, ObjectExistsError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.records import BatchView, inflate
from kafscale.records.checksum import Buffer
from kafscale.storage import quarantine
from kafscale.storage.counters import StorageCounters
from kafscale.storage.formats import index, object_keys, segment
from kafscale.storage.formats.index import Index
from kafscale.storage.formats.index_section import (
    EPOCHS_SECTION,
    PRODUCERS_SECTION,
    TRANSACTIONS_SECTION,
)
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.tail import Unrolled
from kafscale.storage.objects.store import ObjectStore

logger = get_logger(__name__)

Result = TypeVar("Result")

TRANSACTIONS_CONTENT: Final = b"transactions"
"""An object has at least one byte; the key says everything."""

PARALLEL_BUILDS_MAX: Final = 2
"""How many segments are built at once: few, to leave CPU for producers."""

_FIELDS: Final = tuple(
    attrgetter(name)
    for name in (
        "base_offset",
        "count",
        "last_offset",
        "leader_epoch",
        "base_timestamp_ms",
        "max_timestamp_ms",
        "producer_id",
        "producer_epoch",
        "base_sequence",
    )
)
"""Batch fields that compression does not change."""


class RollReason(enum.StrEnum):
    """Why a log is rolled; `roll_scheduler` explains each reason."""

    BYTES = "bytes"
    AGE = "age"
    MEMORY = "memory"
    WAL = "wal"
    EXPLICIT = "explicit"
    RELEASE = "release"
    TAKEOVER = "takeover"
    RETENTION = "retention"
    STATE = "state"


class RolledSegment(msgspec.Struct, frozen=True, gc=False):
    """A segment that was written."""

    base_offset: int
    next_offset: int
    size_bytes: int
    max_timestamp_ms: int
    entries: Index
    index: bytes

    @classmethod
    def from_built(cls, built: segment.Built) -> "RolledSegment":
        return cls(
            built.base_offset,
            built.last_offset + 1,
            built.size_bytes,
            built.max_timestamp_ms,
            built.entries,
            built.index,
        )


class RecoveryState:
    """Producers, transactions and leader epochs, copied so that a thread can encode them."""

    def __init__(self, log: PartitionLog) -> None:
        self._producers = log.producers.copy()
        self._transactions = log.transactions.copy()
        self._epochs = log.epochs.copy()

    def sections_at(self, end_offset: int) -> dict[bytes, bytes]:
        """The sections of the index of a segment that ends at the offset."""
        sections = {
            PRODUCERS_SECTION: self._producers.snapshot_at(end_offset),
            EPOCHS_SECTION: self._epochs.snapshot_at(end_offset),
        }
        transactions = self._transactions.section_at(end_offset)
        if not transactions.is_empty:
            sections[TRANSACTIONS_SECTION] = transactions.encode()
        return sections


class SegmentWriter:
    """Writes segments from the tails of logs."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        *,
        index_interval_bytes: int,
        save_state: Callable[[PartitionLog], Awaitable[None]],
        keep_index: Callable[[PartitionLog, int, Index], None],
        clock: Callable[[], int],
        counters: StorageCounters,
    ) -> None:
        """`keep_index` gets the index of each segment with its base offset, for readers."""
        self._store = store
        self._namespace = namespace
        self._index_interval_bytes = index_interval_bytes
        self._save_state = save_state
        self._keep_index = keep_index
        self._clock = clock
        self._counters = counters
        self._builds = asyncio.Semaphore(PARALLEL_BUILDS_MAX)
        self._with_transactions: set[tuple[bytes, int]] = set()
        """The partitions whose object `transactions` exists, by topic id."""

    async def roll(self, log: PartitionLog, reason: RollReason) -> bool:
        """Roll one segment; return False if there is nothing to roll or the log is lost.

        Afterwards the metadata store knows all segments, unless the log is lost. Raises
        `OperatingError` if a store fails; the WAL keeps the records meanwhile.
        """
        started_ms = self._clock()
        try:
            async with log.roll_lock:
                if log.closed:
                    return False
                rolled = await self._roll(log, started_ms)
                if rolled is not None:
                    self._report(log, rolled, reason, started_ms)
                await self._save_if_needed(log)
        except NotOwnerError as error:
            logger.warning("partition lost", topic=log.topic, reason=str(error))
            return False
        return rolled is not None

    def _report(
        self, log: PartitionLog, rolled: RolledSegment, reason: RollReason, started_ms: int
    ) -> None:
        self._counters.segments_rolled[reason] += 1
        self._counters.segment_bytes += rolled.size_bytes
        logger.info(
            "segment_flushed",
            topic=log.topic,
            partition=log.partition,
            base_offset=rolled.base_offset,
            last_offset=rolled.next_offset - 1,
            size_bytes=rolled.size_bytes,
            reason=reason,
            duration=round((self._clock() - started_ms) / 1000, 3),
        )

    async def _roll(self, log: PartitionLog, started_ms: int) -> RolledSegment | None:
        unrolled = log.tail.unrolled()
        if not unrolled.runs:
            return None
        async with self._builds:
            state = RecoveryState(log)
            built = await asyncio.to_thread(self._build, log, unrolled, state, started_ms)
        rolled = await self._write(log, built)
        log.check_open()
        log.on_rolled(
            rolled.base_offset,
            rolled.next_offset,
            rolled.size_bytes,
            rolled.max_timestamp_ms,
            self._clock(),
        )
        self._keep_index(log, rolled.base_offset, rolled.entries)
        return rolled

    async def save(self, log: PartitionLog) -> None:
        """Save the state of all segments, including those of a former owner that crashed."""
        try:
            async with log.roll_lock:
                await self._save_if_needed(log)
        except NotOwnerError as error:
            logger.warning("partition lost", topic=log.topic, reason=str(error))

    async def _save_if_needed(self, log: PartitionLog) -> None:
        if not log.is_saved:
            rolled_offset = log.tail.rolled_offset
            await self._save_state(log)
            log.saved_offset = max(log.saved_offset, rolled_offset)

    def _build(
        self, log: PartitionLog, unrolled: Unrolled, state: RecoveryState, created_ms: int
    ) -> segment.Built:
        """Build the segment; runs in a thread, because it is CPU-bound."""
        builder = segment.Builder(
            created_ms,
            self._index_interval_bytes,
            compression=log.settings.compression,
            prior_max_timestamp_ms=log.rolled_max_timestamp_ms,
        )
        for view, positions in unrolled.slices(log.settings.segment_bytes):
            if not builder.extend(view, positions):
                break
        return builder.finish(state.sections_at(builder.next_offset))

    async def _write(self, log: PartitionLog, built: segment.Built) -> RolledSegment:
        """Write the segment and then its index."""
        location = (self._namespace, log.directory, log.partition, built.base_offset)
        if TRANSACTIONS_SECTION in built.entries.sections:
            await self._note_transactions(log)
        rolled = await self._upload(log, object_keys.segment_key(*location), built)
        log.check_open()
        await self._store.put(object_keys.index_key(*location), [rolled.index], create=False)
        return rolled

    async def _note_transactions(self, log: PartitionLog) -> None:
        """Write the object that says that segments have transactions."""
        place = (log.topic_id, log.partition)
        if place in self._with_transactions:
            return
        log.check_open()
        key = object_keys.transactions_key(self._namespace, log.directory, log.partition)
        with suppress(ObjectExistsError):
            await self._store.put(key, [TRANSACTIONS_CONTENT])
        self._with_transactions.add(place)

    async def _upload(self, log: PartitionLog, key: str, built: segment.Built) -> RolledSegment:
        """Write the segment, or adopt an existing one."""
        log.check_open()
        try:
            await self._store.put(key, built.parts)
        except ObjectExistsError:
            return await self._adopt(log, key, built)
        return RolledSegment.from_built(built)

    async def _adopt(self, log: PartitionLog, key: str, built: segment.Built) -> RolledSegment:
        """Adopt a segment written by a former owner, or by a PUT whose response was lost.

        It must begin with this log's records. If it contains further records that this log does
        not have, a later owner wrote it.
        """
        listed = await self._store.head(key)
        data = await self._store.get(key)
        try:
            existing = await asyncio.to_thread(_read_own, log.tail.unrolled(), key, data)
        except DamagedObjectError as error:
            await self._save_state(log)  # Fails unless this broker owns the log.
            await quarantine.keep_copy(self._store, self._namespace, key, data, error.reason)
            await self._store.replace(key, built.parts, listed.etag)
            return RolledSegment.from_built(built)
        next_offset = existing.footer.last_offset + 1
        adopted = await asyncio.to_thread(
            index.rebuild,
            existing.batches,
            self._index_interval_bytes,
            prior_max_timestamp_ms=log.rolled_max_timestamp_ms,
        )
        state = RecoveryState(log)
        adopted.sections.update(await asyncio.to_thread(state.sections_at, next_offset))
        return RolledSegment(
            built.base_offset,
            next_offset,
            len(data),
            max(batch.max_timestamp_ms for batch in existing.batches),
            adopted,
            adopted.encode(),
        )


async def retry_while_open(
    log: PartitionLog,
    warning: str,
    key: str,
    operation: Callable[[], Awaitable[Result]],
    random: Random,
) -> Result:
    """Retry until success, or until the log is closed."""
    backoff = Backoff(random)
    while True:
        log.check_open()
        try:
            return await operation()
        except OperatingError as error:
            pause_seconds = backoff.next_seconds()
            logger.warning(
                warning,
                key=key,
                error=str(error),
                tries=backoff.tries,
                retry_in_seconds=round(pause_seconds, 3),
            )
            await asyncio.sleep(pause_seconds)


def _read_own(unrolled: Unrolled, key: str, data: Buffer) -> segment.Segment:
    """Decode an undamaged segment that holds records of this log; runs in a thread."""
    existing = segment.read(key, data)
    ours = unrolled.batches(segment.SEGMENT_BYTES_MAX)
    if not all(map(_is_same, existing.batches, ours)):
        raise DamagedObjectError(key, "it holds records of another log")
    if len(existing.batches) > len(ours):
        raise NotOwnerError(f"{key} holds records of a later owner")
    return existing


def _is_same(batch: BatchView, ours: BatchView) -> bool:
    """Whether both are the same batch, regardless of compression."""
    if batch.buffer == ours.buffer:
        return True
    return all(field(batch) == field(ours) for field in _FIELDS) and inflate(batch) == inflate(ours)
