"""The segments of a partition, listed from the bucket without asking its owner, and its WAL tail.

As for brokers, the listing is authoritative. Keys contain base offsets, so a segment ends where the
next one begins, and only the footer of the newest is read. A listing has a time limit, and is held
in flat arrays, so that a partition may have very many segments.
"""

import asyncio
from array import array
from typing import Final

import msgspec

from kafscale.admin.topics.describe import PartitionDescription, TopicDescription
from kafscale.errors import (
    DamagedObjectError,
    ObjectNotFoundError,
    OperatingError,
    StoreUnavailableError,
)
from kafscale.storage import topic_catalog
from kafscale.storage.bucket import list_objects, read_segment_footer, read_wal_ranges
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

LIST_SECONDS_MAX: Final = 20.0

OBJECTS_MAX: Final = 200
"""In a namespace with more WAL objects than this, they are not read."""

READ_SECONDS_MAX: Final = 5.0


class SegmentInfo(msgspec.Struct, rename="camel"):
    base_offset: int
    last_offset: int | None
    """Null for the newest segment if its footer could not be read."""
    size_bytes: int
    created_at_ms: int
    key: str
    has_index: bool


class SegmentInventory(msgspec.Struct, rename="camel"):
    """The number and size of all segments of a partition, and a page of them, newest first."""

    partition: int
    total: int
    size_bytes: int
    items: list[SegmentInfo]


class SegmentListing:
    """The listed segments of one partition, oldest first."""

    def __init__(self, namespace: str, directory: str, partition: int) -> None:
        self._location = namespace, directory, partition
        self._bases: array[int] = array("q")
        self._sizes: array[int] = array("q")
        self._modified: array[int] = array("q")
        self._indexed: set[int] = set()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._bases)

    async def read(self, store: ObjectStore) -> None:
        namespace = self._location[0]
        prefix = object_keys.partition_prefix(*self._location)
        async for ref, item in list_objects(store, namespace, prefix):
            if not isinstance(ref, object_keys.SegmentRef):
                continue
            if ref.is_index:
                self._indexed.add(ref.base_offset)
                continue
            self._bases.append(ref.base_offset)
            self._sizes.append(item.size_bytes)
            self._modified.append(item.modified_ms)
            self.size_bytes += item.size_bytes

    def newest(self, first: int, count: int) -> list[SegmentInfo]:
        """`count` segments in descending order, after skipping the `first` newest ones."""
        last = len(self._bases) - 1 - first
        return [self._segment(number) for number in range(last, max(last - count, -1), -1)]

    def _segment(self, number: int) -> SegmentInfo:
        base_offset, following = self._bases[number], number + 1
        return SegmentInfo(
            base_offset=base_offset,
            last_offset=self._bases[following] - 1 if following < len(self._bases) else None,
            size_bytes=self._sizes[number],
            created_at_ms=self._modified[number],
            key=object_keys.segment_key(*self._location, base_offset),
            has_index=base_offset in self._indexed,
        )


async def list_segments(
    store: ObjectStore,
    namespace: str,
    topic: TopicDescription,
    partition: int,
    *,
    first: int,
    count: int,
) -> SegmentInventory:
    """List all segments of a partition, and return a page of them, newest first."""
    try:
        async with asyncio.timeout(LIST_SECONDS_MAX):
            directory = await topic_catalog.find_directory(
                store, namespace, topic.name, bytes.fromhex(topic.topic_id)
            )
            listing = SegmentListing(namespace, directory, partition)
            await listing.read(store)
            items = listing.newest(first, count)
            if items and items[0].last_offset is None:
                items[0].last_offset = await _last_offset(store, items[0].key)
    except TimeoutError:
        raise StoreUnavailableError(
            f"the segments of {topic.name}/{partition} were not listed within"
            f" {LIST_SECONDS_MAX:.0f} s; try again when the store is less busy"
        ) from None
    return SegmentInventory(
        partition=partition, total=len(listing), size_bytes=listing.size_bytes, items=items
    )


async def _last_offset(store: ObjectStore, key: str) -> int | None:
    """The last offset from the footer of a segment; None if it is damaged or deleted."""
    try:
        return (await read_segment_footer(store, key)).last_offset
    except (DamagedObjectError, ObjectNotFoundError):
        return None


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
    """The WAL tail of a partition; None if its owner did not report its offsets.

    The number of records is computed from the offsets that the owner reported. The WAL objects are
    read only if there are few of them; otherwise their number and size stay unknown. A range counts
    only if it has the id of this topic: a deleted topic may have had the same name.
    """
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
