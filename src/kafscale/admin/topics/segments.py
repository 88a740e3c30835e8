"""The segments of a partition, listed from the bucket without asking its owner.

As for brokers, the listing is authoritative. Keys contain base offsets, so a segment ends where the
next one begins, and only the footer of the newest is read. A listing has a time limit, and is held
in flat arrays, so that a partition may have very many segments.
"""

import asyncio
from array import array
from typing import Final

import msgspec

from kafscale.errors import DamagedObjectError, ObjectNotFoundError, StoreUnavailableError
from kafscale.storage.bucket import list_objects, read_segment_footer
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.store import ObjectStore

LIST_SECONDS_MAX: Final = 20.0


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

    def __init__(self, namespace: str, topic: str, partition: int) -> None:
        self._topic_partition = namespace, topic, partition
        self._bases: array[int] = array("q")
        self._sizes: array[int] = array("q")
        self._modified: array[int] = array("q")
        self._indexed: set[int] = set()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._bases)

    async def read(self, store: ObjectStore) -> None:
        namespace = self._topic_partition[0]
        prefix = object_keys.partition_prefix(*self._topic_partition)
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
            key=object_keys.segment_key(*self._topic_partition, base_offset),
            has_index=base_offset in self._indexed,
        )


async def list_segments(
    store: ObjectStore, namespace: str, topic: str, partition: int, *, first: int, count: int
) -> SegmentInventory:
    """List all segments of a partition, and return a page of them, newest first."""
    listing = SegmentListing(namespace, topic, partition)
    try:
        async with asyncio.timeout(LIST_SECONDS_MAX):
            await listing.read(store)
            items = listing.newest(first, count)
            if items and items[0].last_offset is None:
                items[0].last_offset = await _last_offset(store, items[0].key)
    except TimeoutError:
        raise StoreUnavailableError(
            f"the segments of {topic}/{partition} were not listed within {LIST_SECONDS_MAX:.0f} s;"
            " try again when the store is less busy"
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
