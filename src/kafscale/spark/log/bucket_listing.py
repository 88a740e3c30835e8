"""Lists a bucket and builds the `OffsetMap` of its topics.

The order of requests matters. The WAL is listed and its footers are read first, segments are listed
after that: records that are trimmed from the WAL in between were rolled into a segment before, so
the segment listing shows them. In a fenced stream all objects below the fence are acknowledged; in
a live stream, those below the first missing sequence number. Their records are durable.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

import msgspec

from kafscale.aio.gather import gather_or_cancel
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.spark.plan.offset_map import CatalogTopic, OffsetMap, TopicPartition, WalRun, build
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys, segment, wal_object
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.wal.streams import Stream, Streams, read_ranges

log = get_logger(__name__)

ATTEMPTS_MAX: Final = 5
"""How often a listing is repeated when objects vanish during it, or when offsets are missing."""

READS_MAX: Final = 32

_Segments = dict[TopicPartition, list[tuple[str, int, int]]]
"""Key, base offset and size of the segments of each partition, ascending."""

_WalRuns = dict[TopicPartition, list[WalRun]]


class _TopicListing(msgspec.Struct, frozen=True):
    """What the listing of topics shows."""

    segments: _Segments
    with_log_start: set[TopicPartition]
    """The partitions that have a log start object."""


class BucketLister:
    """Lists a bucket repeatedly; the footer of each WAL object is read once."""

    def __init__(self, store: BlockingObjectStore, namespace: str) -> None:
        self._blocking = store
        self._namespace = namespace
        self._footers: dict[str, list[wal_object.Range]] = {}

    def list(
        self,
        topics: Collection[str] | None = None,
        matches: Callable[[str], bool] = lambda _topic: True,
    ) -> OffsetMap:
        """Return the offset map of the named topics, or of all topics that `matches` accepts."""
        names = None if topics is None else frozenset(topics)
        accepts = matches if names is None else names.__contains__
        return self._blocking.run(lambda store: self._list_with_retries(store, names, accepts))

    async def _list_with_retries(
        self, store: ObjectStore, names: frozenset[str] | None, matches: Callable[[str], bool]
    ) -> OffsetMap:
        for attempts_left in reversed(range(ATTEMPTS_MAX)):
            try:
                listing, gaps = await self._list_once(
                    store, names, matches, allow_gaps=not attempts_left
                )
            except ObjectNotFoundError:
                if not attempts_left:
                    raise
                continue
            if not gaps:
                break
        return listing

    async def _list_once(
        self,
        store: ObjectStore,
        names: frozenset[str] | None,
        matches: Callable[[str], bool],
        *,
        allow_gaps: bool,
    ) -> tuple[OffsetMap, int]:
        topics, catalog_ms = await _read_catalog(store, self._namespace)
        catalog = {name: topic for name, topic in topics.items() if matches(name)}
        runs = _current_runs(await self._list_wal(store, matches), catalog, catalog_ms)
        listing = await self._list_segments(store, names, matches)
        ends = await self._read_segment_ends(store, listing.segments)
        starts = await self._read_log_starts(store, listing.with_log_start)
        cataloged = {
            (name, index) for name, topic in catalog.items() for index in range(topic.partitions)
        }
        partitions = {}
        gaps = 0
        for topic_partition in sorted({*listing.segments, *runs, *cataloged}):
            partitions[topic_partition], has_gap = build(
                topic_partition,
                listing.segments.get(topic_partition, ()),
                ends.get(topic_partition, 0),
                runs.get(topic_partition, ()),
                start_offset=starts.get(topic_partition, 0),
                allow_gaps=allow_gaps,
            )
            gaps += has_gap
        return OffsetMap(partitions, catalog), gaps

    # --- the WAL ------------------------------------------------------------------------------

    async def _list_wal(self, store: ObjectStore, matches: Callable[[str], bool]) -> _WalRuns:
        streams = await Streams(store, self._namespace, lambda: 0).all()
        items = [item for stream in streams for item in _acknowledged(stream)]
        keys = {item.key for item in items}
        self._footers = {key: footer for key, footer in self._footers.items() if key in keys}
        await _run_all(
            self._read_footer(store, item) for item in items if item.key not in self._footers
        )
        runs: _WalRuns = defaultdict(list)
        for item in items:
            for held in self._footers.get(item.key, ()):
                if matches(held.topic):
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

    async def _read_footer(self, store: ObjectStore, item: ObjectInfo) -> None:
        try:
            self._footers[item.key] = await read_ranges(store, item)
        except ObjectNotFoundError:
            pass  # It was trimmed; its records are in segments now.
        except DamagedObjectError as error:
            log.warning("damaged WAL object skipped", key=item.key, reason=error.reason)

    # --- segments -----------------------------------------------------------------------------

    async def _list_segments(
        self, store: ObjectStore, names: frozenset[str] | None, matches: Callable[[str], bool]
    ) -> _TopicListing:
        if names is None:
            prefixes = [f"{self._namespace}/"]
        else:
            prefixes = [object_keys.topic_prefix(self._namespace, name) for name in sorted(names)]
        listing = _TopicListing(defaultdict(list), set())
        await _run_all(self._list_prefix(store, prefix, matches, listing) for prefix in prefixes)
        return listing

    async def _list_prefix(
        self,
        store: ObjectStore,
        prefix: str,
        matches: Callable[[str], bool],
        listing: _TopicListing,
    ) -> None:
        async for chunk in store.list(prefix):
            for item in chunk:
                if item.key.endswith(object_keys.INDEX_SUFFIX):
                    continue
                parsed = object_keys.parse_segment(self._namespace, item.key)
                if parsed is not None and matches(parsed.topic):
                    listing.segments[parsed.topic, parsed.partition].append(
                        (item.key, parsed.base_offset, item.size_bytes)
                    )
                    continue
                started = object_keys.parse_log_start(self._namespace, item.key)
                if started is not None and matches(started[0]):
                    listing.with_log_start.add(started)

    async def _read_log_starts(
        self, store: ObjectStore, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        starts: dict[TopicPartition, int] = {}

        async def read(topic_partition: TopicPartition) -> None:
            key = object_keys.log_start_key(self._namespace, *topic_partition)
            data = bytes(await store.get(key))
            if not data.isdigit():
                raise DamagedObjectError(key, f"invalid log start offset {data[:20]!r}")
            starts[topic_partition] = int(data)

        await _run_all(read(topic_partition) for topic_partition in topic_partitions)
        return starts

    async def _read_segment_ends(
        self, store: ObjectStore, segments: _Segments
    ) -> dict[TopicPartition, int]:
        ends: dict[TopicPartition, int] = {}

        async def read(topic_partition: TopicPartition, key: str) -> None:
            suffix = await store.get_suffix(key, segment.FOOTER_BYTES)
            ends[topic_partition] = segment.decode_footer(key, suffix).last_offset + 1

        await _run_all(
            read(topic_partition, listed[-1][0]) for topic_partition, listed in segments.items()
        )
        return ends


def list_bucket(
    store: BlockingObjectStore,
    namespace: str,
    topics: Collection[str] | None = None,
    matches: Callable[[str], bool] = lambda _topic: True,
) -> OffsetMap:
    """List a bucket once; see `BucketLister.list`."""
    return BucketLister(store, namespace).list(topics, matches)


async def _read_catalog(store: ObjectStore, namespace: str) -> tuple[dict[str, CatalogTopic], int]:
    """Read the topic catalog that brokers publish, if any, and when it was written."""
    key = object_keys.catalog_key(namespace)
    try:
        modified_ms = (await store.head(key)).modified_ms
        data = await store.get(key)
    except ObjectNotFoundError:
        return {}, -1
    topics = topic_catalog.decode(key, bytes(data)).topics
    return {
        topic.name: CatalogTopic(
            topic.name, bytes.fromhex(topic.topic_id), topic.partition_count, topic.configs
        )
        for topic in topics
    }, modified_ms


def _acknowledged(stream: Stream) -> list[ObjectInfo]:
    """Return the acknowledged objects of a stream that are not empty."""
    if stream.fence is not None:
        items = stream.acknowledged
    else:
        items = [
            item for number, item in stream.objects.items() if number < stream.first_free_sequence
        ]
    return [item for item in items if item.size_bytes != wal_object.EMPTY_BYTES]


def _current_runs(runs: _WalRuns, catalog: dict[str, CatalogTopic], catalog_ms: int) -> _WalRuns:
    """Drop the runs of deleted topics that had the name of an existing topic.

    The topic ID that was written last is the existing one, unless the catalog is newer and says
    otherwise.
    """
    newest: dict[str, tuple[int, bytes]] = {
        name: (catalog_ms, topic.id) for name, topic in catalog.items()
    }
    for (topic, _), topic_runs in runs.items():
        for run in topic_runs:
            if run.modified_ms >= newest.get(topic, (-1, b""))[0]:
                newest[topic] = (run.modified_ms, run.topic_id)
    return {
        topic_partition: [
            run for run in partition_runs if run.topic_id == newest[topic_partition[0]][1]
        ]
        for topic_partition, partition_runs in runs.items()
    }


async def _run_all(work: Iterable[Awaitable[None]]) -> None:
    """Await everything, at most `READS_MAX` at a time."""
    semaphore = asyncio.Semaphore(READS_MAX)

    async def run(awaitable: Awaitable[None]) -> None:
        async with semaphore:
            await awaitable

    await gather_or_cancel(run(awaitable) for awaitable in work)
