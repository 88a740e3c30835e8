"""Which segments a partition has, straight from the bucket, whoever serves it.

The laws: the listing is the truth, as it is for brokers: base offsets stand in the names, so a
segment ends where the next one begins, and only the newest is opened for its footer. However many
there are, flat arrays hold what the listing says of them, and a listing has a time limit.
"""

import asyncio
from array import array
from typing import Any, Final

from kafscale.errors import DamagedObjectError, ObjectNotFoundError, StoreUnavailableError
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.objects.store import ObjectStore

Data = dict[str, Any]

LIST_SECONDS_MAX: Final = 20.0


class Listing:
    """The segments of one partition, oldest first, as a listing has shown them."""

    def __init__(self, namespace: str, topic: str, partition: int) -> None:
        self._place = namespace, topic, partition
        self._bases: array[int] = array("q")
        self._sizes: array[int] = array("q")
        self._modified: array[int] = array("q")
        self._indexed: set[int] = set()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._bases)

    async def read(self, store: ObjectStore) -> None:
        namespace = self._place[0]
        async for chunk in store.list(object_keys.partition_prefix(*self._place)):
            for item in chunk:
                named = object_keys.parse_segment(namespace, item.key)
                if named is None:
                    continue
                if named.is_index:
                    self._indexed.add(named.base_offset)
                    continue
                self._bases.append(named.base_offset)
                self._sizes.append(item.size_bytes)
                self._modified.append(item.modified_ms)
                self.size_bytes += item.size_bytes

    def newest(self, first: int, count: int) -> list[Data]:
        """Some of them, the newest first, after so many that are newer still."""
        last = len(self._bases) - 1 - first
        return [self._segment(number) for number in range(last, max(last - count, -1), -1)]

    def _segment(self, number: int) -> Data:
        base_offset, following = self._bases[number], number + 1
        return {
            "baseOffset": base_offset,
            "lastOffset": self._bases[following] - 1 if following < len(self._bases) else None,
            "sizeBytes": self._sizes[number],
            "createdAtMs": self._modified[number],
            "key": object_keys.segment_key(*self._place, base_offset),
            "hasIndex": base_offset in self._indexed,
        }


async def inventory(
    store: ObjectStore, namespace: str, topic: str, partition: int, *, first: int, count: int
) -> Data:
    """How many segments there are, how much they take, and some of them, the newest first."""
    listing = Listing(namespace, topic, partition)
    try:
        async with asyncio.timeout(LIST_SECONDS_MAX):
            await listing.read(store)
            items = listing.newest(first, count)
            if items and items[0]["lastOffset"] is None:
                items[0]["lastOffset"] = await _last_offset(store, items[0]["key"])
    except TimeoutError:
        raise StoreUnavailableError(
            f"the segments of {topic}/{partition} were not listed within {LIST_SECONDS_MAX:.0f} s;"
            " try again when the store is less busy"
        ) from None
    return {
        "partition": partition,
        "total": len(listing),
        "sizeBytes": listing.size_bytes,
        "items": items,
    }


async def _last_offset(store: ObjectStore, key: str) -> int | None:
    """What the footer of a segment says; None if it has none, or is gone since the listing."""
    try:
        footer = segment.decode_footer(key, await store.get_suffix(key, segment.FOOTER_BYTES))
    except (DamagedObjectError, ObjectNotFoundError):
        return None
    return footer.last_offset
