"""What of a partition is in WAL objects only: the records from its last segment to the end.

The laws: how many records there are is what the owner has said; which objects hold them is looked
up in the bucket only where there are few enough of them, and left unknown otherwise. A range counts
if it is of this very topic: one that was deleted may have had the same name.
"""

import asyncio
from typing import Any, Final

from kafscale.aio.gather import gather_or_cancel
from kafscale.errors import DamagedObjectError, ObjectNotFoundError, OperatingError
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.wal.streams import read_ranges

Data = dict[str, Any]

OBJECTS_MAX: Final = 200
"""In a namespace with more WAL objects, they are not looked into."""

READS_MAX: Final = 16
LOOK_SECONDS_MAX: Final = 5.0


async def wal_tail(
    store: ObjectStore, namespace: str, topic_id: bytes, partition: Data
) -> Data | None:
    """The tail of a partition that was looked at; None if its owner did not tell of it."""
    start, end = partition["rolledOffset"], partition["highWatermark"]
    if start is None or end is None:
        return None
    start = max(start, partition["startOffset"])
    told: Data = {
        "fromOffset": start,
        "toOffset": end,
        "recordCount": max(end - start, 0),
        "objectCount": None,
        "sizeBytes": None,
    }
    if end <= start:
        return told | {"toOffset": start, "objectCount": 0, "sizeBytes": 0}
    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            place = topic_id, partition["partition"]
            lengths = await _lengths(store, namespace, place, start, end)
    except (OperatingError, TimeoutError):
        return told
    if lengths is None:
        return told
    return told | {"objectCount": len(lengths), "sizeBytes": sum(lengths)}


async def _lengths(
    store: ObjectStore, namespace: str, place: tuple[bytes, int], start: int, end: int
) -> list[int] | None:
    """What each object that holds some of the tail has of it; None if there are too many."""
    items: list[ObjectInfo] = []
    async for chunk in store.list(object_keys.wal_root(namespace)):
        items += (item for item in chunk if item.size_bytes > wal_object.EMPTY_BYTES)
        if len(items) > OBJECTS_MAX:
            return None
    reads = asyncio.Semaphore(READS_MAX)

    async def held(item: ObjectInfo) -> int:
        async with reads:
            try:
                ranges = await read_ranges(store, item)
            except (DamagedObjectError, ObjectNotFoundError):
                return 0  # It was trimmed meanwhile, or nobody can read it.
        return sum(
            each.length
            for each in ranges
            if (each.topic_id, each.partition) == place
            and each.last_offset >= start
            and each.base_offset < end
        )

    return [length for length in await gather_or_cancel(map(held, items)) if length]
