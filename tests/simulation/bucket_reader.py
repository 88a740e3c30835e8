"""A reader of the bucket without metadata, as Spark is one: it lists objects and reads them.

It uses the listing of the Spark source. Every record that was known before the listing must be
found where the listing says, unless it is deleted meanwhile. What is found is durable: it must stay
at its offset from then on.
"""

from types import SimpleNamespace
from typing import Any, Final

from kafscale.errors import DamagedObjectError, ObjectNotFoundError, OperatingError, RecordsError
from kafscale.records import BatchView, iterate, split
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.storage.formats import segment
from kafscale.storage.objects.store import ObjectStore
from simulation.cluster import SimulatedCluster
from simulation.model import (
    NAMESPACE,
    InvariantViolationError,
    PartitionModel,
    SimulatedTopic,
    value_of,
)

ATTEMPTS_MAX: Final = 5
"""How often the bucket is listed again because a listed object is gone."""

Found = dict[int, tuple[bytes, int]]
"""The value and the timestamp of each record, by offset."""


class BucketReader:
    """Reads partitions from the bucket alone."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._store = cluster.connect()

    async def check(self, topic: SimulatedTopic, number: int) -> None:
        """Read a partition, and compare it with what is known of it."""
        model = topic.partitions[number]
        expected = model.known_values()
        deleted_to = model.deleted_to
        for _ in range(ATTEMPTS_MAX):
            try:
                listed = await list_partition(self._store, topic, number)
                found = await self._read(listed, model)
            except ObjectNotFoundError:
                continue
            except (DamagedObjectError, RecordsError) as error:
                if not self._cluster.has_damage:
                    raise InvariantViolationError(f"{topic.name}/{number}: {error}") from error
                return
            except OperatingError:
                return
            if not topic.is_deleted:
                start_offset = await self._start_offset(topic, number)
                self._check(model, listed, found, expected, deleted_to, start_offset)
            return

    async def _read(self, listed: PartitionOffsets, model: PartitionModel) -> Found:
        found: Found = {}
        for extent in listed.extents:
            for batch in await read_extent(self._store, extent):
                batch.verify_checksum()  # Else a flipped bit may give a batch any length.
                model.check_batch(batch)
                for record in iterate(batch):
                    if extent.start_offset <= record.offset < extent.end_offset:
                        found[record.offset] = (value_of(batch, record), batch.max_timestamp_ms)
        return found

    async def _start_offset(self, topic: SimulatedTopic, number: int) -> int:
        """The log start offset that a client may have observed by now."""
        states = await self._cluster.metadata.states()
        state = states.get((topic.id, number))
        log = self._cluster.owner(topic, number).engine.logs.find_by_id(topic.id, number)
        return max(
            topic.partitions[number].start_seen,
            state.log_start_offset if state else 0,
            log.start_offset if log else 0,
        )

    def _check(  # noqa: PLR0917 - what was known before, and what was found.
        self,
        model: PartitionModel,
        listed: PartitionOffsets,
        found: Found,
        expected: dict[int, bytes],
        deleted_to: int,
        start_offset: int,
    ) -> None:
        name = f"{listed.topic}/{listed.partition}"
        if listed.start_offset < deleted_to or not model.is_damaged(
            start_offset, listed.start_offset
        ):
            raise InvariantViolationError(
                f"{name}: the bucket says that it begins at {listed.start_offset}, but it begins"
                f" at {start_offset}, and offsets below {deleted_to} are deleted"
            )
        for offset in expected:
            if offset >= start_offset and offset not in found and not model.may_miss(offset):
                extents = [(one.key, one.start_offset, one.end_offset) for one in listed.extents]
                raise InvariantViolationError(
                    f"{name}: offset {offset} is not in the bucket: {extents}"
                )
        for offset, (value, timestamp_ms) in found.items():
            if offset >= start_offset:
                model.record(offset, value, timestamp_ms)


async def list_partition(
    store: ObjectStore, topic: SimulatedTopic, number: int
) -> PartitionOffsets:
    """List a partition as Spark does."""
    # The simulation has one thread: a request is awaited here instead of in a loop of its own.
    inline: Any = SimpleNamespace(run=lambda request: request(store))
    listing: Any = BucketLister(inline, NAMESPACE).list([topic.name])
    offset_map = await listing
    missing = PartitionOffsets(topic.name, number, 0, 0)
    partition: PartitionOffsets = offset_map.partitions.get((topic.name, number), missing)
    return partition


async def read_extent(store: ObjectStore, extent: Extent) -> list[BatchView]:
    """The batches of an extent, and maybe some before or after it."""
    data = await store.get(extent.key)
    if extent.is_wal:
        return split(data[extent.position : extent.position + extent.length])
    return segment.read(extent.key, data).batches
