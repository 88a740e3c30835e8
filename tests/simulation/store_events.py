"""What the object store does to chosen objects: refused segments, and flipped bits."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

from doubles.faulty_object_store import Fault, Rule
from kafscale.errors import DamagedObjectError
from kafscale.storage.formats import object_keys, segment, wal_object
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.segments.segment_writer import RollReason
from simulation.cluster import NO_FAULTS, SimulatedCluster
from simulation.model import NAMESPACE, InvariantViolationError, PartitionModel

REFUSED_COUNT: Final = 2
ROLL_SECONDS: Final = 10
REFUSED_SECONDS: Final = 90
"""Longer than the longest pause of a retry, and than any retention of the simulation."""


class StoreEvents:
    """Lets the store fail for some objects."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._random: Random = cluster.random

    # --- refused writes -------------------------------------------------------------------------

    async def refuse_partitions(self) -> None:
        """Refuse the segments of two partitions; the others are rolled, and expire."""
        partitions = self._cluster.partitions()
        self._random.shuffle(partitions)
        rules = [
            Rule(
                fault=Fault.REFUSED,
                operations=frozenset({"put"}),
                keys=f"{NAMESPACE}/{topic.directory}/{number}/*",
            )
            for topic, number, _ in partitions[:REFUSED_COUNT]
        ]
        self._cluster.change_faults((*rules, *NO_FAULTS), 0)
        others = []
        for topic, number, model in partitions:
            log = self._cluster.log(topic, number)
            broker = self._cluster.owner(topic, number)
            if (topic, number, model) not in partitions[:REFUSED_COUNT]:
                others.append((log, model, log.high_watermark, broker))
        for _ in range(REFUSED_SECONDS // ROLL_SECONDS):
            for topic, number, _ in partitions:
                # Again and again: a log that is scheduled for less is not scheduled for more.
                scheduler = self._cluster.owner(topic, number).engine.roll_scheduler
                scheduler.schedule_roll(self._cluster.log(topic, number), RollReason.EXPLICIT)
            await asyncio.sleep(ROLL_SECONDS)
        for log, model, end_offset, broker in others:
            if not log.closed:
                self._check_progress(log, model, end_offset, broker.clock_ms())
        self._cluster.change_faults(NO_FAULTS, 0)

    def _check_progress(
        self, log: PartitionLog, model: PartitionModel, end_offset: int, now_ms: int
    ) -> None:
        if log.tail.rolled_offset < end_offset:
            raise InvariantViolationError(
                f"{log!r} is rolled to {log.tail.rolled_offset}, not to {end_offset},"
                " while segments of others are refused"
            )
        # Half of the time allows for the roll, and for the check of retention.
        limit_ms = now_ms - log.settings.retention_ms - REFUSED_SECONDS * 500
        has_expired = (
            log.settings.retention_ms >= 0 and model.newest_ms_below(end_offset) < limit_ms
        )
        if has_expired and log.start_offset < end_offset:
            raise InvariantViolationError(
                f"{log!r} has expired records below {end_offset}"
                " while segments of others are refused"
            )

    # --- damage ---------------------------------------------------------------------------------

    async def damage_index(self) -> None:
        """An index is derived data: nothing is lost."""
        await self._damage(object_keys.INDEX_SUFFIX, self._of_index)

    async def damage_segment(self) -> None:
        await self._damage(object_keys.SEGMENT_SUFFIX, self._of_segment)

    async def damage_wal(self) -> int | None:
        """Damage the newest object of a stream; return the broker that wrote it."""
        key = await self._damage(object_keys.WAL_SUFFIX, self._of_wal_object)
        ref = object_keys.parse_wal(NAMESPACE, key) if key else None
        return ref.broker_id if ref else None

    async def _damage(
        self, suffix: str, allow_missing: Callable[[str, memoryview], Awaitable[bool]]
    ) -> str | None:
        """Flip a bit of an object; return its key."""
        objects = self._cluster.objects
        listing = objects.list(f"{NAMESPACE}/")
        keys = [item.key async for chunk in listing for item in chunk if item.key.endswith(suffix)]
        if suffix == object_keys.WAL_SUFFIX:
            keys = [key for key in keys if object_keys.parse_wal(NAMESPACE, key)]
            keys = list({key.rpartition("/")[0]: key for key in keys}.values())
        # What a damaged object says about its offsets cannot be used for the model.
        keys = [key for key in keys if key not in self._cluster.damaged_keys]
        if not keys:
            return None
        key = self._random.choice(keys)
        data = await objects.get(key)
        if await allow_missing(key, data):
            self._cluster.has_damage |= suffix != object_keys.INDEX_SUFFIX
            self._cluster.damaged_keys.add(key)
            damaged = bytearray(data)
            position = self._random.randrange(len(data))
            damaged[position] ^= 1 << self._random.randrange(8)
            await objects.put(key, [damaged], create=False)
            return key
        return None

    async def _of_index(self, key: str, data: memoryview) -> bool:  # noqa: ARG002
        ref = object_keys.parse_segment(NAMESPACE, key)
        return ref is not None

    async def _of_segment(self, key: str, data: memoryview) -> bool:
        ref = object_keys.parse_segment(NAMESPACE, key)
        if ref is None:
            return False  # It is staged: jobs and owners verify it.
        footer = segment.decode_footer(key, data)
        topic = self._cluster.topics[ref.topic]
        if ref.directory == topic.directory:
            offsets = range(ref.base_offset, footer.last_offset + 1)
            topic.partitions[ref.partition].damage(offsets, is_durable=True)
        return True

    async def _of_wal_object(self, key: str, data: memoryview) -> bool:
        try:
            decoded = wal_object.decode(key, data)
        except DamagedObjectError:
            return False  # It is damaged already.
        if decoded.header.is_fence or not decoded.ranges:
            return False
        models = {(topic.id, number): model for topic, number, model in self._cluster.partitions()}
        for range_ in decoded.ranges:
            model = models.get((range_.topic_id, range_.partition))
            if model is not None:
                offsets = range(range_.base_offset, range_.last_offset + 1)
                model.damage(offsets, is_durable=False)
        return True
