"""An inventory: which topics and partitions a bucket holds anything of, whatever metadata says.

The laws: everything that counts is found, be it in segments or only in streams that are over; what
was written last is dated by the store's own clock, so that dates can be compared. Names of objects
tell of topics by name; only the WAL knows their ids, too. A stream without a fence is that of a
living broker, and is left out. What follows from it is left to those who restore metadata.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable
from typing import Any, Final

import msgspec

from kafscale.aio.gather import together
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.topic_catalog import Catalog
from kafscale.storage.wal.footer_reader import read_table
from kafscale.storage.wal.streams import Streams

log = get_logger(__name__)

READS_MAX: Final = 32
"""How many small objects are read at once."""

PARTITION_COUNT_MAX: Final = 10_000
"""No topic has more; an object that says otherwise is not one of ours."""


class Trace(msgspec.Struct):
    """What a topic has left somewhere."""

    partition_count: int = 0
    """One more than the greatest number of a partition that was met."""
    newest_ms: int = -1
    """When the last of it was written."""

    def note(self, partition: int, modified_ms: int) -> None:
        self.partition_count = max(self.partition_count, partition + 1)
        self.newest_ms = max(self.newest_ms, modified_ms)


class FoundTopic(msgspec.Struct):
    """What there is of a topic, or of several that had one name after the other."""

    objects: Trace
    """Under the name of the topic: segments, indexes and starts of logs."""
    in_wal: defaultdict[bytes, Trace]
    """By the id of the topic."""

    @classmethod
    def nothing(cls) -> "FoundTopic":
        return cls(Trace(), defaultdict(Trace))


class Inventory(msgspec.Struct):
    """Everything that was found."""

    topics: defaultdict[str, FoundTopic]
    log_starts: dict[tuple[str, int], int]
    """By topic and partition, where an object tells it."""
    catalog: Catalog | None = None
    catalog_ms: int = -1
    """When the catalog was written."""
    object_count: int = 0
    wal_object_count: int = 0


class Inventories:
    """Takes inventories of a namespace."""

    def __init__(self, store: ObjectStore, namespace: str, streams: Streams) -> None:
        self._store = store
        self._namespace = namespace
        self._streams = streams
        self._reads = asyncio.Semaphore(READS_MAX)

    async def take(self) -> Inventory:
        found = Inventory(defaultdict(FoundTopic.nothing), {})
        await self._read_catalog(found)
        # Streams first: what is made into a segment meanwhile is found there.
        await self._read_streams(found)
        await self._list(found)
        return found

    async def _read_catalog(self, found: Inventory) -> None:
        key = object_keys.catalog_key(self._namespace)
        try:
            info = await self._store.head(key)
            found.catalog = topic_catalog.decode(key, bytes(await self._store.get(key)))
            found.catalog_ms = info.modified_ms
        except ObjectNotFoundError:
            log.warning("no catalog of topics", key=key)
        except DamagedObjectError as error:
            log.warning("damaged catalog of topics", key=key, reason=error.reason)

    async def _read_streams(self, found: Inventory) -> None:
        items = [
            item
            for stream in await self._streams.all()
            if stream.fence is not None
            for item in stream.counting
            if item.size_bytes != wal_object.EMPTY_BYTES
        ]
        found.wal_object_count = len(items)
        await self._each(self._read_table(item, found) for item in items)

    async def _read_table(self, item: ObjectInfo, found: Inventory) -> None:
        try:
            ranges = await read_table(self._store, item)
        except DamagedObjectError as error:
            log.warning("damaged WAL object", key=item.key, reason=error.reason)
            return
        for held in ranges:
            if held.partition < PARTITION_COUNT_MAX:
                trace = found.topics[held.topic].in_wal[held.topic_id]
                trace.note(held.partition, item.modified_ms)

    async def _list(self, found: Inventory) -> None:
        marked = []
        async for chunk in self._store.list(f"{self._namespace}/"):
            found.object_count += len(chunk)
            for item in chunk:
                place = self._place(item.key)
                if place is None:
                    continue
                topic, partition = place
                found.topics[topic].objects.note(partition, item.modified_ms)
                if item.key == object_keys.log_start_key(self._namespace, topic, partition):
                    marked.append(place)
        await self._each(self._read_start(place, found) for place in marked)

    def _place(self, key: str) -> tuple[str, int] | None:
        """The topic and the partition that an object is of; None if it is none of ours."""
        segment = object_keys.parse_segment(self._namespace, key)
        if segment is not None:
            place = segment.topic, segment.partition
        else:
            started = object_keys.parse_log_start(self._namespace, key)
            if started is None:
                return None
            place = started
        if place[1] >= PARTITION_COUNT_MAX:
            log.warning("object ignored of a partition that no topic has", key=key)
            return None
        return place

    async def _read_start(self, place: tuple[str, int], found: Inventory) -> None:
        key = object_keys.log_start_key(self._namespace, *place)
        data = bytes(await self._store.get(key))
        if data.isdigit():
            found.log_starts[place] = int(data)
        else:
            log.warning("damaged start of a log", key=key)

    async def _each(self, works: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Do all of it, so much at a time."""

        async def one(work: Coroutine[Any, Any, None]) -> None:
            async with self._reads:
                await work

        await together(one(work) for work in works)
