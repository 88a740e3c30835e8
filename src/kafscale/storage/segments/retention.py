"""Retention: deletes old segments by time and size, and advances the log start offset.

The order makes a crash harmless: first the log start offset advances in memory, then the metadata
store records it, then the objects are deleted. Objects that remain below the start after a crash
or a failure are deleted at the next check.

Readers without metadata (Spark) derive the log start offset from the first segment. If it differs,
or if no segment is left, a small log start object contains it.
"""

from collections.abc import Awaitable, Callable

from kafscale.observability.logging import get_logger
from kafscale.storage.formats import object_keys
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.log_reader import LogReader
from kafscale.storage.segments.roll_scheduler import RollScheduler
from kafscale.storage.segments.segment_writer import RollReason

logger = get_logger(__name__)

FOREVER = -1


class Retention:
    """Applies the retention of topics, and DeleteRecords."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        reader: LogReader,
        roll_scheduler: RollScheduler,
        *,
        save_state: Callable[[PartitionLog], Awaitable[None]],
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._reader = reader
        self._roll_scheduler = roll_scheduler
        self._save_state = save_state
        self._clock = clock

    async def enforce(self, log: PartitionLog) -> None:
        """Apply a topic's retention to one of its logs."""
        await self._roll_expired(log)
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

    async def _roll_expired(self, log: PartitionLog) -> None:
        """Roll a tail whose records have all expired, so that they can be deleted as a segment."""
        limit_ms = self._limit_ms(log)
        runs = log.tail.runs
        if limit_ms is not None and runs and runs[-1].max_timestamp_ms < limit_ms:
            await self._roll_scheduler.roll(log, RollReason.RETENTION)

    def _start_by_size(self, log: PartitionLog) -> int:
        """The log start that keeps at most `retention.bytes`, in whole segments."""
        retention_bytes = log.settings.retention_bytes
        start_offset = log.start_offset
        if retention_bytes == FOREVER:
            return start_offset
        excess_bytes = log.segments.total_bytes + log.tail.unrolled_bytes - retention_bytes
        for segment in log.segments:
            if segment.size_bytes > excess_bytes:
                break
            excess_bytes -= segment.size_bytes
            start_offset = segment.next_offset
        return start_offset

    async def _start_by_time(self, log: PartitionLog) -> int:
        """The log start that excludes segments whose newest record is older than `retention.ms`."""
        limit_ms = self._limit_ms(log)
        start_offset = log.start_offset
        if limit_ms is None:
            return start_offset
        for segment in list(log.segments):
            if segment.next_offset <= start_offset:
                continue
            newest_ms = (await self._reader.index(log, segment)).max_timestamp_ms
            if newest_ms is None or newest_ms < 0:
                newest_ms = (
                    await self._store.head(self._keys(log, segment.base_offset)[1])
                ).modified_ms
            if newest_ms >= limit_ms:
                break
            start_offset = segment.next_offset
        return start_offset

    async def _delete_segments(self, log: PartitionLog) -> None:
        """Delete the segments below the log start offset."""
        async with log.segments_lock:
            await self._delete_below(log, log.start_offset)

    async def _delete_below(self, log: PartitionLog, start_offset: int) -> None:
        segments = log.segments
        count = segments.count_below(start_offset)
        if not count or log.closed:
            return
        keys = [
            key for number in range(count) for key in self._keys(log, segments[number].base_offset)
        ]
        # A log without segments is opened from the start offset in the metadata store.
        await self._save_state(log)
        if count == len(segments):
            await self._write_log_start(log)
        await self._store.delete(keys)
        segments.drop_first(count)
        log.tail.evict_below(start_offset)
        logger.info(
            "segments deleted",
            topic=log.topic,
            partition=log.partition,
            count=count,
            start_offset=start_offset,
        )

    async def _write_log_start(self, log: PartitionLog) -> None:
        """Write the log start object for readers without metadata."""
        key = object_keys.log_start_key(self._namespace, log.directory, log.partition)
        await self._store.put(key, [str(log.start_offset).encode()], create=False)

    def _limit_ms(self, log: PartitionLog) -> int | None:
        retention_ms = log.settings.retention_ms
        return None if retention_ms == FOREVER else self._clock() - retention_ms

    def _keys(self, log: PartitionLog, base_offset: int) -> tuple[str, str]:
        location = (self._namespace, log.directory, log.partition, base_offset)
        # The index first: a segment without an index is repaired, the reverse is garbage.
        return object_keys.index_key(*location), object_keys.segment_key(*location)
