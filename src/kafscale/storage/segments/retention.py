"""Retention: old segments go, by time and by size, and the log's start moves with them.

The order keeps every crash harmless: first readers lose sight of what lies below the new start,
then the metadata store remembers it, then the objects are deleted. Objects that a crash or a
failure has left below the start are deleted the next time.

Those who read the bucket alone see the start of a log by its first segment. Where it is another, or
there are no segments left, an object of a few bytes tells them.
"""

from collections.abc import Awaitable, Callable

from kafscale.observability.logging import get_logger
from kafscale.storage.counters import Statistics
from kafscale.storage.formats import object_keys
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.log_reader import LogReader
from kafscale.storage.segments.roll_scheduler import Upkeep

log = get_logger(__name__)

FOREVER = -1


class Retention:
    """Deletes what topics no longer keep."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        reader: LogReader,
        upkeep: Upkeep,
        *,
        save: Callable[[PartitionLog], Awaitable[None]],
        clock: Callable[[], int],
        statistics: Statistics,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._reader = reader
        self._upkeep = upkeep
        self._save = save
        self._clock = clock
        self._statistics = statistics

    async def enforce(self, partition: PartitionLog) -> None:
        """Apply a topic's retention to one of its logs."""
        await self._roll_expired(partition)
        start_offset = max(
            partition.start_offset,
            self._start_by_size(partition),
            await self._start_by_time(partition),
        )
        partition.advance_start(start_offset)
        await self._delete_segments(partition)

    async def delete_records(self, partition: PartitionLog, offset: int) -> None:
        """Make an offset the first of its log."""
        partition.advance_start(offset)
        await self._save(partition)
        await self._mark(partition)

    async def _roll_expired(self, partition: PartitionLog) -> None:
        """Records that have expired in the tail become a segment first, and are deleted as one."""
        limit_ms = self._limit_ms(partition)
        runs = partition.tail.runs
        if limit_ms is not None and runs and runs[-1].max_timestamp_ms < limit_ms:
            await self._upkeep.roll(partition, "retention")

    def _start_by_size(self, partition: PartitionLog) -> int:
        """The start that leaves no more than `retention.bytes`, counting whole segments."""
        kept_bytes = partition.settings.retention_bytes
        start_offset = partition.start_offset
        if kept_bytes == FOREVER:
            return start_offset
        excess_bytes = partition.segments.total_bytes + partition.tail.unrolled_bytes - kept_bytes
        for segment in partition.segments:
            if segment.size_bytes > excess_bytes:
                break
            excess_bytes -= segment.size_bytes
            start_offset = segment.next_offset
        return start_offset

    async def _start_by_time(self, partition: PartitionLog) -> int:
        """The start that leaves out segments whose newest record is older than `retention.ms`."""
        limit_ms = self._limit_ms(partition)
        start_offset = partition.start_offset
        if limit_ms is None:
            return start_offset
        for segment in list(partition.segments):
            if segment.next_offset <= start_offset:
                continue
            newest_ms = (await self._reader.index(partition, segment)).max_timestamp_ms
            if newest_ms is None or newest_ms < 0:
                newest_ms = (
                    await self._store.head(self._keys(partition, segment.base_offset)[1])
                ).modified_ms
            if newest_ms >= limit_ms:
                break
            start_offset = segment.next_offset
        return start_offset

    async def _delete_segments(self, partition: PartitionLog) -> None:
        """Delete the segments that lie below the start of the log."""
        async with partition.pruning:
            await self._delete_below(partition, partition.start_offset)

    async def _delete_below(self, partition: PartitionLog, start_offset: int) -> None:
        segments = partition.segments
        gone = segments.count_below(start_offset)
        if not gone or partition.closed:
            return
        keys = [
            key
            for number in range(gone)
            for key in self._keys(partition, segments[number].base_offset)
        ]
        # A log whose segments are all gone goes on from the start that is remembered.
        await self._save(partition)
        if gone == len(segments):
            await self._mark(partition)
        await self._store.delete(keys)
        segments.drop_first(gone)
        partition.tail.evict_below(start_offset)
        self._statistics.segments_deleted += gone
        log.info(
            "segments deleted",
            topic=partition.topic,
            partition=partition.partition,
            count=gone,
            start_offset=start_offset,
        )

    async def _mark(self, partition: PartitionLog) -> None:
        """Tell readers of the bucket where the log starts."""
        key = object_keys.log_start_key(self._namespace, partition.topic, partition.partition)
        await self._store.put(key, [str(partition.start_offset).encode()], create=False)

    def _limit_ms(self, partition: PartitionLog) -> int | None:
        kept_ms = partition.settings.retention_ms
        return None if kept_ms == FOREVER else self._clock() - kept_ms

    def _keys(self, partition: PartitionLog, base_offset: int) -> tuple[str, str]:
        place = (self._namespace, partition.topic, partition.partition, base_offset)
        # The index first: a segment without one is repaired, an index without one is garbage.
        return object_keys.index_key(*place), object_keys.segment_key(*place)
