"""Retention: deletes old segments by time and size, and advances the log start offset.

The order makes a crash harmless: first the log start offset advances in memory, then the metadata
store records it, then the objects are deleted. Objects that remain below the start after a crash
or a failure are deleted at the next check. A deletion that takes effect late is harmless, too: keys
below the log start offset are never used again.

Segments are deleted before anything is rolled, so that retention works while the store accepts no
segments.

Readers without metadata (Spark) derive the log start offset from the first segment. If it differs,
or if no segment is left, a small log start object contains it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from kafscale.errors import (
    DamagedObjectError,
    KafscaleError,
    ObjectChangedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreUnavailableError,
)
from kafscale.observability.logging import get_logger
from kafscale.storage.bucket import read_log_start
from kafscale.storage.formats import object_keys
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import Segment
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.segments.newest_timestamps import PARALLEL_READS_MAX, NewestTimestamps
from kafscale.storage.segments.roll_scheduler import RollScheduler
from kafscale.storage.segments.segment_writer import RollReason

logger = get_logger(__name__)

FOREVER = -1

SCAN_MAX = 10_000
"""How many segments are compared before other tasks run."""

DELETIONS_MAX = 333
"""How many segments are deleted at once: with their indexes, as many as one request can delete."""

WRITES_MAX = 5
"""How often a log start object is written again, if it changed between a read and the write."""


class Retention:
    """Applies the retention of topics, and DeleteRecords."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        newest_timestamps: NewestTimestamps,
        roll_scheduler: RollScheduler,
        *,
        save_state: Callable[[PartitionLog], Awaitable[None]],
        producer_expiration_ms: int,
        clock: Callable[[], int],
    ) -> None:
        self.producer_expiration_ms = producer_expiration_ms
        """How long an idle producer is remembered; it may change."""
        self._store = store
        self._namespace = namespace
        self._newest_timestamps = newest_timestamps
        self._roll_scheduler = roll_scheduler
        self._save_state = save_state
        self._clock = clock

    async def run(self, logs: Callable[[], Iterable[PartitionLog]], *, interval_ms: int) -> None:
        """Apply retention to all logs, and forget old producers, until cancelled."""
        while True:
            await asyncio.sleep(interval_ms / 1000)
            for log in logs():
                facts = {"topic": log.topic, "partition": log.partition}
                try:
                    log.producers.expire(self._clock(), self.producer_expiration_ms)
                    log.transactions.retain(log.producers)
                    await self.enforce(log)
                except KafscaleError as error:
                    logger.warning("retention failed", **facts, error=str(error))
                except Exception:
                    # A boundary: an error of one log must not stop the retention of the others.
                    logger.exception("retention failed", **facts)

    async def enforce(self, log: PartitionLog) -> None:
        """Apply a topic's retention to one of its logs."""
        self._roll_expired(log)
        start_offset = max(
            log.start_offset, self._start_by_size(log), await self._start_by_time(log)
        )
        log.advance_start(start_offset)
        await self._delete_segments(log)

    async def delete_records(self, log: PartitionLog, offset: int) -> None:
        """Make `offset` the log start offset."""
        log.advance_start(offset)
        await self._save_state(log)
        await self._write_log_start(log)

    def _roll_expired(self, log: PartitionLog) -> None:
        """Roll a tail whose records have all expired; the next check deletes the segment.

        A tail without timestamps expires once it is a segment, which has a time of writing.
        """
        limit_ms = self._limit_ms(log)
        runs = log.tail.runs
        is_expired = limit_ms is not None and runs and 0 <= runs[-1].max_timestamp_ms < limit_ms
        if is_expired and log.tail.unrolled_bytes:
            self._roll_scheduler.schedule_roll(log, RollReason.RETENTION)

    def _start_by_size(self, log: PartitionLog) -> int:
        """The log start that keeps at most `retention.bytes`, in whole segments."""
        retention_bytes = log.settings.retention_bytes
        if retention_bytes == FOREVER:
            return log.start_offset
        excess_bytes = log.segments.total_bytes + log.tail.unrolled_bytes - retention_bytes
        return log.segments.offset_after_bytes(excess_bytes) or log.start_offset

    async def _start_by_time(self, log: PartitionLog) -> int:
        """The log start that excludes segments whose newest record is older than `retention.ms`."""
        limit_ms = self._limit_ms(log)
        start_offset = log.start_offset
        if limit_ms is None:
            return start_offset
        segments = log.segments
        parallel = 1
        while len(segments) and start_offset < segments.end_offset:
            first = segments.find(start_offset)
            count = segments.count_older(first, limit_ms, SCAN_MAX)
            if count:
                start_offset = segments[first + count - 1].next_offset
            elif segments.newest_ms(first) is not None:
                break
            else:
                await self._newest_timestamps.load(log, segments.some(first, parallel))
                parallel = min(2 * parallel, PARALLEL_READS_MAX)
            await asyncio.sleep(0)
        return start_offset

    async def _delete_segments(self, log: PartitionLog) -> None:
        """Delete the segments below the log start offset, unless a swap or a transfer runs."""
        if log.segments_lock.locked():
            return  # It may take long; the next check deletes them.
        async with log.segments_lock:
            start_offset = log.start_offset
            count = log.segments.count_below(start_offset)
            if not count or log.closed:
                return
            # A log without segments is opened from the start offset in the metadata store.
            await self._save_state(log)
            if count == len(log.segments):
                await self._write_log_start(log)
            for first in range(0, count, DELETIONS_MAX):
                oldest = log.segments.some(0, min(count - first, DELETIONS_MAX))
                await self._store.delete([key for each in oldest for key in self._keys(log, each)])
                log.segments.drop_first(len(oldest))
            log.tail.evict_below(start_offset)
        logger.info(
            "segments deleted",
            topic=log.topic,
            partition=log.partition,
            count=count,
            start_offset=start_offset,
        )

    async def _write_log_start(self, log: PartitionLog) -> None:
        """Write the log start object for readers without metadata; it never moves back."""
        key = object_keys.log_start_key(*self._location(log))
        for _ in range(WRITES_MAX):
            try:
                return await self._raise_log_start(key, log.start_offset)
            except (ObjectExistsError, ObjectChangedError):
                continue  # An earlier write took effect just now.
        raise StoreUnavailableError(f"{key} is being written by another broker")

    async def _raise_log_start(self, key: str, start_offset: int) -> None:
        data = [str(start_offset).encode()]
        try:
            stored = await self._store.head(key)
            if await read_log_start(self._store, key) >= start_offset:
                return
        except ObjectNotFoundError:
            await self._store.put(key, data)
            return
        except DamagedObjectError as error:
            logger.warning("damaged log start object replaced", key=key, reason=error.reason)
        await self._store.replace(key, data, stored.etag)

    def _limit_ms(self, log: PartitionLog) -> int | None:
        retention_ms = log.settings.retention_ms
        return None if retention_ms == FOREVER else self._clock() - retention_ms

    def _keys(self, log: PartitionLog, segment: Segment) -> tuple[str, ...]:
        location = self._location(log)
        base_offset, end_offset = segment.base_offset, segment.next_offset
        return (
            # The index first: a segment without an index is repaired, the reverse is garbage.
            object_keys.index_key(*location, base_offset),
            object_keys.segment_key(*location, base_offset),
            # There if the segment was merged.
            object_keys.merged_key(*location, base_offset, end_offset),
        )

    def _location(self, log: PartitionLog) -> tuple[str, str, int]:
        return self._namespace, log.directory, log.partition
