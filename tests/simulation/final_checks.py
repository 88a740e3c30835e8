"""What must hold at the end of a run, after one broker has taken over from all others."""

from collections import Counter
from contextlib import suppress

from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.segments.segment_writer import RollReason
from kafscale.storage.wal.dead_stream_cleaner import ABANDONED_MS, FENCE_RETENTION_MS
from simulation.brokers import Broker
from simulation.cluster import SimulatedCluster
from simulation.model import NAMESPACE, InvariantViolationError


class RemainingObjects:
    """Checks which objects remain in the bucket."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    async def check(self, successor: Broker) -> None:
        """After a stop, segments have everything, and no other objects remain."""
        for log in list(successor.engine.logs):
            await successor.engine.roll_scheduler.roll(log, RollReason.EXPLICIT)
            with suppress(OperatingError):  # The engine may be about to do the same.
                await successor.engine.retention.enforce(log)
        await successor.stop()
        await self._cluster.clean_streams()
        await self._check_objects(successor)
        if successor.engine.wal.unflushed_bytes:
            raise InvariantViolationError("unflushed bytes remain after a stop")
        successor.engine.end_session()
        if successor.engine.memory.used_bytes:
            raise InvariantViolationError(
                f"{successor.engine.memory.used_bytes} bytes of memory are not released"
            )
        self._cluster.registered.clear()
        for _ in range(2):  # The first run fences the last stream.
            await self._cluster.clean_streams_later(ABANDONED_MS + FENCE_RETENTION_MS + 1)
        if left := [key for key in await self._keys() if object_keys.parse_wal(NAMESPACE, key)]:
            raise InvariantViolationError(
                f"{left} remain in the WAL after all brokers have stopped"
            )

    async def _check_objects(self, successor: Broker) -> None:
        """Every segment is there with its index, and of each stream only its newest object."""
        keys = await self._keys()
        expected = {
            make(NAMESPACE, log.directory, log.partition, segment.base_offset)
            for log in successor.engine.logs
            for segment in log.segments
            for make in (object_keys.segment_key, object_keys.index_key)
        }
        segments = {key for key in keys if object_keys.parse_segment(NAMESPACE, key)}
        # An index that its writer could not finish cannot be rebuilt from a damaged segment.
        not_rebuilt = {
            object_keys.index_key_of(key)
            for key in self._cluster.damaged_keys
            if key.endswith(object_keys.SEGMENT_SUFFIX)
        }
        if missing := expected - segments - not_rebuilt:
            raise InvariantViolationError(f"{sorted(missing)} should be there")
        if left := {key for key in segments - expected if self._should_be_gone(key)}:
            raise InvariantViolationError(f"{sorted(left)} should be gone")
        counting: Counter[tuple[int, int]] = Counter()
        for key in keys:
            partition_key = object_keys.parse_wal(NAMESPACE, key)
            if partition_key is not None and not await self._is_kept(key):
                counting[partition_key.broker_id, partition_key.epoch] += 1
        if any(count > 1 for count in counting.values()):
            raise InvariantViolationError(f"more than the newest are left of the WAL: {counting}")

    def _should_be_gone(self, key: str) -> bool:
        """Whether no write that took effect late can have left this object.

        An index, a segment of a deleted topic, one below the log start offset, and one inside a
        merged segment are never read. A damaged segment without a readable batch is kept, so
        that it can be repaired.
        """
        if key in self._cluster.damaged_keys:
            return False
        ref = object_keys.parse_segment(NAMESPACE, key)
        assert ref is not None
        topic = self._cluster.topics[ref.topic]
        if ref.is_index or ref.directory != topic.directory:
            return False
        log = self._cluster.log(topic, ref.partition)
        return ref.base_offset >= log.start_offset and not any(
            segment.base_offset < ref.base_offset < segment.next_offset for segment in log.segments
        )

    async def _keys(self) -> list[str]:
        listing = self._cluster.objects.list(f"{NAMESPACE}/")
        return [item.key async for chunk in listing for item in chunk]

    async def _is_kept(self, key: str) -> bool:
        """Whether an object stays as long as its stream: a fence, or a damaged object."""
        try:
            content = wal_object.decode(key, await self._cluster.objects.get(key))
        except DamagedObjectError:
            if not self._cluster.has_damage:
                raise
            return True
        return content.header.is_fence
