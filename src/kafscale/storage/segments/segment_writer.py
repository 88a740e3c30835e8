"""Rolling: the oldest part of a partition's tail becomes a segment and its index.

A log is rolled when it has a segment's worth of records, when the oldest of them has waited for
long enough, when memory or the WAL run full, or when somebody asks. The invariants:

* A segment holds durable records only, from where the last one ended; it is create-only. Whoever
  finds its key taken reads what is there and adopts it, as an earlier owner of this log wrote it.
* The index is derived, so it may be written over. A crash between the two PUTs leaves a segment
  without an index, which recovery makes anew.
* The WAL lets go of a record only after the segment that holds it is complete.
"""

import asyncio
from collections.abc import Awaitable, Callable
from operator import attrgetter
from random import Random
from typing import Final, TypeVar

import msgspec

from kafscale.aio.backoff import Backoff
from kafscale.errors import DamagedObjectError, NotOwnerError, ObjectExistsError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.records import BatchView, inflate
from kafscale.records.checksum import Buffer
from kafscale.storage.counters import Statistics
from kafscale.storage.formats import index, object_keys, segment
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.tail import Waiting
from kafscale.storage.objects.store import ObjectStore

log = get_logger(__name__)

Result = TypeVar("Result")

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
"""What compression leaves as it is."""

PRODUCERS_SECTION = b"PROD"
EPOCHS_SECTION = b"EPOC"


class Made(msgspec.Struct, frozen=True, gc=False):
    """A segment that exists now."""

    base_offset: int
    next_offset: int
    size_bytes: int
    max_timestamp_ms: int
    index: bytes

    @classmethod
    def of(cls, built: segment.Built) -> "Made":
        return cls(
            built.base_offset,
            built.last_offset + 1,
            built.size_bytes,
            built.max_timestamp_ms,
            built.index,
        )


class SegmentWriter:
    """Makes one segment at a time out of a log's tail."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        *,
        index_interval_bytes: int,
        save: Callable[[PartitionLog], Awaitable[None]],
        clock: Callable[[], int],
        random: Random,
        statistics: Statistics,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._index_interval_bytes = index_interval_bytes
        self._save = save
        self._clock = clock
        self._random = random
        self._statistics = statistics

    async def roll(self, partition: PartitionLog, reason: str) -> bool:
        """Make a segment of what waits for one; False if there was nothing, or nobody left.

        When this returns, the metadata store knows all segments, unless nobody is left.
        """
        started_ms = self._clock()
        try:
            async with partition.rolling:
                if partition.closed:
                    return False
                made = await self._make(partition, started_ms)
                await self._tell(partition)
        except NotOwnerError as error:
            log.warning("partition lost", topic=partition.topic, reason=str(error))
            return False
        if made is None:
            return False
        self._statistics.segments_rolled[reason] += 1
        self._statistics.segment_bytes += made.size_bytes
        log.info(
            "segment_flushed",
            topic=partition.topic,
            partition=partition.partition,
            base_offset=made.base_offset,
            last_offset=made.next_offset - 1,
            size_bytes=made.size_bytes,
            reason=reason,
            duration=round((self._clock() - started_ms) / 1000, 3),
        )
        return True

    async def _make(self, partition: PartitionLog, started_ms: int) -> Made | None:
        waiting = partition.tail.waiting()
        if not waiting.runs:
            return None
        builder = await asyncio.to_thread(self._build, partition, waiting, started_ms)
        built = builder.finish(_sections(partition, builder.next_offset))
        made = await self._write(partition, built)
        partition.check_open()
        partition.on_rolled(
            made.base_offset,
            made.next_offset,
            made.size_bytes,
            made.max_timestamp_ms,
            self._clock(),
        )
        return made

    async def save(self, partition: PartitionLog) -> None:
        """Have the metadata store know all segments, also those of a former owner that crashed."""
        try:
            async with partition.rolling:
                await self._tell(partition)
        except NotOwnerError as error:
            log.warning("partition lost", topic=partition.topic, reason=str(error))

    async def _tell(self, partition: PartitionLog) -> None:
        if not partition.is_saved:
            rolled_offset = partition.tail.rolled_offset
            await self._retry(partition, "partition state", lambda: self._save(partition))
            partition.saved_offset = rolled_offset

    def _build(self, partition: PartitionLog, waiting: Waiting, created_ms: int) -> segment.Builder:
        """The segment; runs in a thread of its own, because it takes a while."""
        builder = segment.Builder(
            created_ms,
            self._index_interval_bytes,
            compression=partition.settings.compression,
            prior_max_timestamp_ms=partition.rolled_max_timestamp_ms,
        )
        for view, positions in waiting.stretches(partition.settings.segment_bytes):
            if not builder.extend(view, positions):
                break
        return builder

    async def _write(self, partition: PartitionLog, built: segment.Built) -> Made:
        """Write the segment and then its index."""
        place = (self._namespace, partition.topic, partition.partition, built.base_offset)
        made = await self._upload(partition, object_keys.segment_key(*place), built)
        key = object_keys.index_key(*place)
        await self._retry(partition, key, lambda: self._store.put(key, [made.index], create=False))
        return made

    async def _upload(self, partition: PartitionLog, key: str, built: segment.Built) -> Made:
        """Write the segment, or find that it has been written."""
        create = built.base_offset not in partition.damaged_bases

        async def put() -> Made:
            if not create:
                await self._save(partition)  # Only an owner gets beyond this.
            try:
                await self._store.put(key, built.parts, create=create)
            except ObjectExistsError:
                return await self._adopt(partition, key, built)
            return Made.of(built)

        return await self._retry(partition, key, put)

    async def _adopt(self, partition: PartitionLog, key: str, built: segment.Built) -> Made:
        """Take a segment for ours that an earlier owner of this log, or a lost answer, has left.

        It begins with the records of ours, or is not of this log. One that goes on with records
        that we never had is a later owner's.
        """
        data = await self._store.get(key)
        try:
            found = _read_own(partition, key, data)
        except DamagedObjectError as error:
            await self._save(partition)  # Only an owner gets beyond this.
            log.warning("segment replaced", key=key, reason=error.reason)
            await self._store.put(key, built.parts, create=False)
            return Made.of(built)
        next_offset = found.footer.last_offset + 1
        adopted = index.rebuild(
            found.batches,
            self._index_interval_bytes,
            prior_max_timestamp_ms=partition.rolled_max_timestamp_ms,
        )
        adopted.sections.update(_sections(partition, next_offset))
        return Made(
            built.base_offset,
            next_offset,
            len(data),
            max(batch.max_timestamp_ms for batch in found.batches),
            adopted.encode(),
        )

    async def _retry(
        self, partition: PartitionLog, key: str, operation: Callable[[], Awaitable[Result]]
    ) -> Result:
        """Try until it works, or the log is closed: the WAL holds the records meanwhile."""
        backoff = Backoff(self._random)
        while True:
            partition.check_open()
            try:
                return await operation()
            except OperatingError as error:
                pause_seconds = backoff.next_seconds()
                log.warning(
                    "segment not written",
                    key=key,
                    error=str(error),
                    tries=backoff.tries,
                    retry_in_seconds=round(pause_seconds, 3),
                )
                await asyncio.sleep(pause_seconds)


def _read_own(partition: PartitionLog, key: str, data: Buffer) -> segment.Segment:
    """A segment that is whole and of this log."""
    found = segment.read(key, data)
    ours = partition.tail.unrolled(segment.SEGMENT_BYTES_MAX)
    if not all(map(_is_same, found.batches, ours)):
        raise DamagedObjectError(key, "it holds other records than this log")
    if len(found.batches) > len(ours):
        raise NotOwnerError(f"{key} holds records that another owner has taken")
    return found


def _is_same(batch: BatchView, ours: BatchView) -> bool:
    """Whether it is the same batch, compressed or not."""
    if batch.buffer == ours.buffer:
        return True
    return all(field(batch) == field(ours) for field in _FIELDS) and inflate(batch) == inflate(ours)


def _sections(partition: PartitionLog, end_offset: int) -> dict[bytes, bytes]:
    """What the log knew at the segment's end, and recovery needs to know again."""
    return {
        PRODUCERS_SECTION: partition.producers.snapshot_at(end_offset),
        EPOCHS_SECTION: partition.epochs.snapshot_at(end_offset),
    }
