"""The part of a partition that is only in WAL objects: from its last segment to the end.

The number of records is computed from the offsets that the owner reported. The WAL objects are read
only if there are few of them; otherwise their number and size stay unknown. A range counts only if
it has the id of this topic: a deleted topic may have had the same name.
"""

import asyncio
from typing import Final

import msgspec

from kafscale.admin.topics.describe import PartitionDescription
from kafscale.errors import OperatingError
from kafscale.storage.bucket import read_wal_ranges
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

OBJECTS_MAX: Final = 200
"""In a namespace with more WAL objects than this, they are not read."""

READ_SECONDS_MAX: Final = 5.0


class WalTail(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a partition that is only in WAL objects."""

    from_offset: int
    to_offset: int
    record_count: int
    object_count: int | None = None
    """None if the WAL objects were not read."""
    size_bytes: int | None = None


async def wal_tail(
    store: ObjectStore, namespace: str, topic_id: bytes, partition: PartitionDescription
) -> WalTail | None:
    """The WAL tail of a partition; None if its owner did not report its offsets."""
    rolled, end = partition.rolled_offset, partition.high_watermark
    if rolled is None or end is None:
        return None
    assert partition.start_offset is not None
    start = max(rolled, partition.start_offset)
    if end <= start:
        return WalTail(start, start, 0, object_count=0, size_bytes=0)
    tail = WalTail(start, end, end - start)
    try:
        async with asyncio.timeout(READ_SECONDS_MAX):
            lengths = await _lengths(store, namespace, (topic_id, partition.partition), start, end)
    except (OperatingError, TimeoutError):
        return tail
    if lengths is None:
        return tail
    return msgspec.structs.replace(tail, object_count=len(lengths), size_bytes=sum(lengths))


async def _lengths(
    store: ObjectStore, namespace: str, topic_partition: tuple[bytes, int], start: int, end: int
) -> list[int] | None:
    """The size of the tail in each WAL object that has a part of it; None if there are too many."""
    items: list[ObjectInfo] = []
    async for chunk in store.list(object_keys.wal_root(namespace)):
        items += (item for item in chunk if item.size_bytes > wal_object.EMPTY_BYTES)
        if len(items) > OBJECTS_MAX:
            return None
    lengths = [
        sum(
            each.length
            for each in ranges
            if (each.topic_id, each.partition) == topic_partition
            and each.last_offset >= start
            and each.base_offset < end
        )
        for ranges in (await read_wal_ranges(store, items)).values()
    ]
    return [length for length in lengths if length]
