"""Looking at a store once: what it holds of which topics, as a `LogMap`.

The order matters. The WAL is listed and its tables are read first, segments are listed then: what
is trimmed from the WAL meanwhile has become a segment before, and so is seen there. Of a stream
that is over, all objects below its fence count; of one that goes on, those up to the first that is
missing. What they hold is durable, and will never be taken back.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

import msgspec

from kafscale.aio.gather import together
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.spark.plan.offset_map import KnownTopic, LogMap, Place, WalRun, draw
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys, segment, wal_object
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.wal.streams import Stream, Streams

log = get_logger(__name__)

LOOKS_MAX: Final = 5
"""How often objects may vanish while they are looked at, or offsets be missing in between."""

READS_MAX: Final = 32

_Segments = dict[Place, list[tuple[str, int, int]]]


class _Listing(msgspec.Struct, frozen=True):
    """What the listing of topics shows."""

    segments: _Segments
    marked: set[Place]
    """Those whose start is told by an object."""


class Surveyor:
    """Looks at a store, as often as wanted; tables of WAL objects are read once."""

    def __init__(self, store: BlockingObjectStore, namespace: str) -> None:
        self._blocking = store
        self._namespace = namespace
        self._tables: dict[str, list[wal_object.Range]] = {}

    def look(
        self,
        topics: Collection[str] | None = None,
        wanted: Callable[[str], bool] = lambda _topic: True,
    ) -> LogMap:
        """A map of some topics, by name; of all that are wanted, without."""
        names = None if topics is None else frozenset(topics)
        chosen = wanted if names is None else names.__contains__
        return self._blocking.run(lambda store: self._look(store, names, chosen))

    async def _look(
        self, store: ObjectStore, names: frozenset[str] | None, wanted: Callable[[str], bool]
    ) -> LogMap:
        for looks_left in reversed(range(LOOKS_MAX)):
            try:
                found, gaps = await self._try(store, names, wanted, holes_accepted=not looks_left)
            except ObjectNotFoundError:
                if not looks_left:
                    raise
                continue
            if not gaps:
                break
        return found

    async def _try(
        self,
        store: ObjectStore,
        names: frozenset[str] | None,
        wanted: Callable[[str], bool],
        *,
        holes_accepted: bool,
    ) -> tuple[LogMap, int]:
        catalog, known_ms = await _catalog(store, self._namespace)
        known = {name: topic for name, topic in catalog.items() if wanted(name)}
        runs = _current(await self._runs(store, wanted), known, known_ms)
        listing = await self._list(store, names, wanted)
        ends = await self._ends(store, listing.segments)
        starts = await self._starts(store, listing.marked)
        empty = {(name, number) for name in known for number in range(known[name].partitions)}
        partitions = {}
        gaps = 0
        for place in sorted({*listing.segments, *runs, *empty}):
            partitions[place], has_gap = draw(
                place,
                listing.segments.get(place, ()),
                ends.get(place, 0),
                runs.get(place, ()),
                start_offset=starts.get(place, 0),
                holes_accepted=holes_accepted,
            )
            gaps += has_gap
        return LogMap(partitions, known), gaps

    # --- the WAL ------------------------------------------------------------------------------

    async def _runs(
        self, store: ObjectStore, wanted: Callable[[str], bool]
    ) -> dict[Place, list[WalRun]]:
        streams = await Streams(store, self._namespace, lambda: 0).all()
        items = [item for stream in streams for item in _counting(stream)]
        there = {item.key for item in items}
        self._tables = {key: table for key, table in self._tables.items() if key in there}
        await _all(self._read_table(store, item) for item in items if item.key not in self._tables)
        runs: dict[Place, list[WalRun]] = defaultdict(list)
        for item in items:
            for held in self._tables.get(item.key, ()):
                if wanted(held.topic):
                    runs[held.topic, held.partition].append(
                        WalRun(
                            item.key,
                            held.topic_id,
                            held.position,
                            held.length,
                            held.base_offset,
                            held.last_offset,
                            held.max_timestamp_ms,
                            item.modified_ms,
                        )
                    )
        return runs

    async def _read_table(self, store: ObjectStore, item: ObjectInfo) -> None:
        try:
            self._tables[item.key] = await read_table(store, item)
        except ObjectNotFoundError:
            pass  # It was trimmed: what it held is in segments by now.
        except DamagedObjectError as error:
            log.warning("damaged WAL object skipped", key=item.key, reason=error.reason)

    # --- segments -----------------------------------------------------------------------------

    async def _list(
        self, store: ObjectStore, names: frozenset[str] | None, wanted: Callable[[str], bool]
    ) -> _Listing:
        if names is None:
            prefixes = [f"{self._namespace}/"]
        else:
            prefixes = [object_keys.topic_prefix(self._namespace, name) for name in sorted(names)]
        listing = _Listing(defaultdict(list), set())
        await _all(self._list_below(store, prefix, wanted, listing) for prefix in prefixes)
        return listing

    async def _list_below(
        self, store: ObjectStore, prefix: str, wanted: Callable[[str], bool], listing: _Listing
    ) -> None:
        async for chunk in store.list(prefix):
            for item in chunk:
                if item.key.endswith(object_keys.INDEX_SUFFIX):
                    continue
                place = object_keys.parse_segment(self._namespace, item.key)
                if place is not None and wanted(place.topic):
                    listing.segments[place.topic, place.partition].append(
                        (item.key, place.base_offset, item.size_bytes)
                    )
                    continue
                marked = object_keys.parse_log_start(self._namespace, item.key)
                if marked is not None and wanted(marked[0]):
                    listing.marked.add(marked)

    async def _starts(self, store: ObjectStore, marked: Iterable[Place]) -> dict[Place, int]:
        starts: dict[Place, int] = {}

        async def read(place: Place) -> None:
            key = object_keys.log_start_key(self._namespace, *place)
            data = bytes(await store.get(key))
            if not data.isdigit():
                raise DamagedObjectError(key, f"{data[:20]!r} is no offset")
            starts[place] = int(data)

        await _all(read(place) for place in marked)
        return starts

    async def _ends(self, store: ObjectStore, segments: _Segments) -> dict[Place, int]:
        ends: dict[Place, int] = {}

        async def read(place: Place, key: str) -> None:
            suffix = await store.get_suffix(key, segment.FOOTER_BYTES)
            ends[place] = segment.decode_footer(key, suffix).last_offset + 1

        await _all(read(place, found[-1][0]) for place, found in segments.items())
        return ends


def survey(
    store: BlockingObjectStore,
    namespace: str,
    topics: Collection[str] | None = None,
    wanted: Callable[[str], bool] = lambda _topic: True,
) -> LogMap:
    """One look at some topics, by name; at all that are wanted, without."""
    return Surveyor(store, namespace).look(topics, wanted)


async def read_table(store: ObjectStore, item: ObjectInfo) -> list[wal_object.Range]:
    """What a WAL object holds, from its last bytes."""
    length = min(wal_object.TAIL_BYTES_HINT, item.size_bytes)
    while True:
        suffix = await store.get_suffix(item.key, length)
        # As long as the name is there, its file was not given to another object meanwhile.
        await store.head(item.key)
        table = wal_object.decode_footer(item.key, suffix, item.size_bytes)
        if isinstance(table, list):
            return table
        length = table


async def _catalog(store: ObjectStore, namespace: str) -> tuple[dict[str, KnownTopic], int]:
    """The topics that brokers tell of, if they do, and when that was."""
    key = object_keys.catalog_key(namespace)
    try:
        told_ms = (await store.head(key)).modified_ms
        data = await store.get(key)
    except ObjectNotFoundError:
        return {}, -1
    topics = topic_catalog.decode(key, bytes(data)).topics
    return {
        topic.name: KnownTopic(
            topic.name, bytes.fromhex(topic.topic_id), topic.partition_count, topic.configs
        )
        for topic in topics
    }, told_ms


def _counting(stream: Stream) -> list[ObjectInfo]:
    """The objects of a stream that count and hold something."""
    if stream.fence is not None:
        counting = stream.counting
    else:
        counting = [item for number, item in stream.objects.items() if number < stream.first_free]
    return [item for item in counting if item.size_bytes != wal_object.EMPTY_BYTES]


def _current(
    runs: dict[Place, list[WalRun]], known: dict[str, KnownTopic], known_ms: int
) -> dict[Place, list[WalRun]]:
    """What is of topics that exist, and not of deleted ones that had the same name.

    The topic that was written to last is the one that exists; if a catalog is newer, that knows.
    """
    newest: dict[str, tuple[int, bytes]] = {
        name: (known_ms, topic.id) for name, topic in known.items()
    }
    for (topic, _), held in runs.items():
        for run in held:
            if run.modified_ms >= newest.get(topic, (-1, b""))[0]:
                newest[topic] = (run.modified_ms, run.topic_id)
    return {
        place: [run for run in held if run.topic_id == newest[place[0]][1]]
        for place, held in runs.items()
    }


async def _all(work: Iterable[Awaitable[None]]) -> None:
    """Do everything, so much of it at a time."""
    free = asyncio.Semaphore(READS_MAX)

    async def one(awaitable: Awaitable[None]) -> None:
        async with free:
            await awaitable

    await together(one(awaitable) for awaitable in work)
