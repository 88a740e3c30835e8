"""Lists a bucket and builds the `OffsetMap` of its topics.

The order of requests matters. The WAL is listed and its footers are read first, segments are listed
after that: records that are trimmed from the WAL in between were rolled into a segment before, so
the segment listing shows them. In a fenced stream all objects below the fence are acknowledged; in
a live stream, those below the first missing sequence number. Their records are durable.

Of several topics of one name the current one is listed: see `current_topics`.

For readers of committed records, `transactions` then finds where partitions end.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final

import msgspec

from kafscale.aio.gather import map_limited
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets, WalRun, build
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.read.current_topics import WalRuns, current_runs, newer_topics, without_deleted
from kafscale.spark.read.damaged_partitions import DamagedPartitions, map_readable
from kafscale.spark.read.transactions import TransactionReader
from kafscale.storage import topic_catalog
from kafscale.storage.bucket import (
    READS_MAX,
    list_objects,
    read_log_start,
    read_segment_footer,
    read_wal_ranges,
)
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.log.state.transactions import TransactionSpans
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.topic_catalog import Catalog, CatalogTopic
from kafscale.storage.wal.streams import Streams
from kafscale.text.topic_partition import (
    TopicPartition,
    id_of_directory,
    topic_directory,
    topic_of_directory,
)

ATTEMPTS_MAX: Final = 5
"""How often a listing is repeated when objects vanish during it, or when offsets are missing."""

_Segments = dict[TopicPartition, list[tuple[str, int, int]]]
"""Key, base offset and size of the segments of each partition, ascending."""


class _TopicListing(msgspec.Struct, frozen=True):
    """What the listing of topics shows."""

    segments: _Segments
    with_log_start: list[tuple[str, int]]
    """The topic directories and partitions that have a log start object."""
    with_transactions: set[TopicPartition]
    """The partitions whose segments have batches of transactions."""


class _DirectoryListing(msgspec.Struct):
    """What the listing of one topic directory shows."""

    segments: defaultdict[int, list[tuple[str, int, int]]] = msgspec.field(
        default_factory=lambda: defaultdict(list)
    )
    with_log_start: list[int] = []
    with_transactions: list[int] = []
    modified_ms: int = 0

    def add_segment(self, ref: object_keys.SegmentRef, item: ObjectInfo) -> None:
        self.segments[ref.partition].append((item.key, ref.base_offset, item.size_bytes))
        self.modified_ms = max(self.modified_ms, item.modified_ms)


class BucketLister:
    """Lists a bucket repeatedly; the footer of each WAL object is read once."""

    def __init__(self, store: BlockingObjectStore, namespace: str) -> None:
        self._blocking = store
        self._namespace = namespace
        self._footers: dict[str, list[wal_object.Range]] = {}
        self._transactions = TransactionReader()

    def list(
        self,
        topics: Collection[str] | None = None,
        matches: Callable[[str], bool] = lambda _topic: True,
        *,
        committed: bool = False,
        damaged: DamagedPartitions | None = None,
    ) -> OffsetMap:
        """Return the offset map of the named topics, or of all topics that `matches` accepts.

        With `committed`, partitions end at their last stable offsets. Damage that hides one of them
        is an error; or else such partitions are left out, and added to `damaged`.
        """
        names = None if topics is None else frozenset(topics)
        accepts = matches if names is None else names.__contains__
        return self._blocking.run(
            lambda store: self._list_with_retries(
                store, names, accepts, committed=committed, damaged=damaged
            )
        )

    def load_aborted(
        self,
        offset_map: OffsetMap,
        ranges: Iterable[OffsetRange],
        *,
        with_open: bool = False,
        damaged: DamagedPartitions | None = None,
    ) -> OffsetMap:
        """Add the aborted transactions of the ranges, for readers of committed records.

        With `with_open`, open transactions count as aborted. For `damaged`, see `list`.
        """
        bounds: dict[TopicPartition, tuple[int, int]] = {}
        for each in ranges:
            key = each.topic, each.partition
            if offset_map.partitions[key].has_transactions:
                start, end = bounds.get(key, (each.start_offset, each.end_offset))
                bounds[key] = min(start, each.start_offset), max(end, each.end_offset)
        if not bounds:
            return offset_map

        async def load(store: ObjectStore, key: TopicPartition) -> PartitionOffsets:
            partition = offset_map.partitions[key]
            spans = await self._aborted(store, partition, *bounds[key], with_open=with_open)
            return msgspec.structs.replace(partition, aborted=spans)

        loaded = self._blocking.run(
            lambda store: map_readable(partial(load, store), bounds, damaged)
        )
        partitions = {
            key: loaded.get(key, partition)
            for key, partition in offset_map.partitions.items()
            if key in loaded or key not in bounds
        }
        return msgspec.structs.replace(offset_map, partitions=partitions)

    def open_producers(
        self, offset_map: OffsetMap, starts: Mapping[TopicPartition, Iterable[int]]
    ) -> dict[TopicPartition, dict[int, tuple[int, ...]]]:
        """Return the producers with an open transaction at the beginnings of segments."""

        async def find(store: ObjectStore) -> dict[TopicPartition, dict[int, tuple[int, ...]]]:
            return {
                key: {
                    start: await self._transactions.open_producers(
                        store, offset_map.partitions[key], start
                    )
                    for start in offsets
                }
                for key, offsets in starts.items()
                if offset_map.partitions[key].has_rolled_transactions
            }

        return self._blocking.run(find)

    async def _aborted(
        self,
        store: ObjectStore,
        partition: PartitionOffsets,
        from_offset: int,
        to_offset: int,
        *,
        with_open: bool,
    ) -> TransactionSpans:
        """Read aborted transactions; list the partition again if its objects were replaced."""
        names = frozenset([partition.topic])
        for attempts_left in reversed(range(ATTEMPTS_MAX)):
            try:
                return await self._transactions.aborted(
                    store, partition, from_offset, to_offset, with_open=with_open
                )
            except (ObjectNotFoundError, DamagedObjectError):
                if not attempts_left:
                    raise
            listing, _ = await self._list_once(store, names, names.__contains__, allow_gaps=True)
            partition = listing.partitions.get((partition.topic, partition.partition), partition)
        raise AssertionError("the last attempt raises")

    async def _list_with_retries(
        self,
        store: ObjectStore,
        names: frozenset[str] | None,
        matches: Callable[[str], bool],
        *,
        committed: bool,
        damaged: DamagedPartitions | None,
    ) -> OffsetMap:
        for attempts_left in reversed(range(ATTEMPTS_MAX)):
            try:
                listing, gaps = await self._list_once(
                    store, names, matches, allow_gaps=not attempts_left
                )
                if committed:
                    listing = await self._to_committed(
                        store, listing, None if attempts_left else damaged
                    )
            except (ObjectNotFoundError, DamagedObjectError):
                if not attempts_left:
                    raise
                continue
            if not gaps:
                break
        return listing

    async def _to_committed(
        self, store: ObjectStore, listing: OffsetMap, damaged: DamagedPartitions | None
    ) -> OffsetMap:
        """Let all partitions end at their last stable offsets."""
        self._transactions.keep(listing.partitions.values())

        async def end(key: TopicPartition) -> PartitionOffsets:
            return await self._transactions.committed(store, listing.partitions[key])

        partitions = await map_readable(end, listing.partitions, damaged)
        return msgspec.structs.replace(listing, partitions=partitions)

    async def _list_once(
        self,
        store: ObjectStore,
        names: frozenset[str] | None,
        matches: Callable[[str], bool],
        *,
        allow_gaps: bool,
    ) -> tuple[OffsetMap, int]:
        published, catalog_ms = await _read_catalog(store, self._namespace)
        deleted_ids = published.deleted_ids
        all_runs = without_deleted(deleted_ids, await self._list_wal(store, matches))
        listed = {topic.name: topic for topic in published.topics if matches(topic.name)}
        catalog = listed | newer_topics(listed, catalog_ms, all_runs)
        runs = current_runs(all_runs, catalog)
        prefixes = self._segment_prefixes(names, catalog, runs)
        listings = await self._list_segments(store, prefixes, matches)
        listing = _current_listing(listings, catalog, deleted_ids)
        ends = await _read_segment_ends(store, listing.segments)
        starts = await self._read_log_starts(store, listing.with_log_start)
        cataloged = {
            (name, index)
            for name, topic in catalog.items()
            for index in range(topic.partition_count)
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
                has_rolled_transactions=topic_partition in listing.with_transactions,
            )
            gaps += has_gap
        return OffsetMap(partitions, catalog), gaps

    # --- the WAL ------------------------------------------------------------------------------

    async def _list_wal(self, store: ObjectStore, matches: Callable[[str], bool]) -> WalRuns:
        streams = await Streams(store, self._namespace, lambda: 0).all()
        items = [item for stream in streams for item in stream.with_records]
        new = await read_wal_ranges(
            store, [item for item in items if item.key not in self._footers]
        )
        known = self._footers | new
        self._footers = {item.key: known[item.key] for item in items if item.key in known}
        runs: WalRuns = defaultdict(list)
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
                            held.is_transactional,
                        )
                    )
        return runs

    # --- segments -----------------------------------------------------------------------------

    def _segment_prefixes(
        self, names: frozenset[str] | None, catalog: Mapping[str, CatalogTopic], runs: WalRuns
    ) -> Sequence[str]:
        if names is None:
            return [f"{self._namespace}/"]
        directories = {topic.directory for name, topic in catalog.items() if name in names}
        directories |= names - catalog.keys()
        directories |= {
            topic_directory(name, run.topic_id)
            for (name, _), partition_runs in runs.items()
            if name not in catalog
            for run in partition_runs
        }
        return [object_keys.topic_prefix(self._namespace, each) for each in directories]

    async def _list_segments(
        self, store: ObjectStore, prefixes: Sequence[str], matches: Callable[[str], bool]
    ) -> Mapping[str, _DirectoryListing]:
        listings: dict[str, _DirectoryListing] = defaultdict(_DirectoryListing)

        async def list_prefix(prefix: str) -> None:
            async for ref, item in list_objects(store, self._namespace, prefix):
                match ref:
                    case object_keys.SegmentRef(is_index=False) if matches(ref.topic):
                        listings[ref.directory].add_segment(ref, item)
                    case object_keys.LogStartRef() if matches(ref.topic):
                        listings[ref.directory].with_log_start.append(ref.partition)
                    case object_keys.TransactionsRef() if matches(ref.topic):
                        listings[ref.directory].with_transactions.append(ref.partition)

        await map_limited(list_prefix, prefixes, READS_MAX)
        return listings

    async def _read_log_starts(
        self, store: ObjectStore, directories: Sequence[tuple[str, int]]
    ) -> dict[TopicPartition, int]:
        async def read(directory: tuple[str, int]) -> int:
            key = object_keys.log_start_key(self._namespace, *directory)
            return await read_log_start(store, key)

        starts = await map_limited(read, directories, READS_MAX)
        return {
            (topic_of_directory(directory), partition): start
            for (directory, partition), start in zip(directories, starts, strict=True)
        }


def list_bucket(
    store: BlockingObjectStore,
    namespace: str,
    topics: Collection[str] | None = None,
    matches: Callable[[str], bool] = lambda _topic: True,
    *,
    committed: bool = False,
) -> OffsetMap:
    """List a bucket once; see `BucketLister.list`."""
    return BucketLister(store, namespace).list(topics, matches, committed=committed)


def _current_listing(
    listings: Mapping[str, _DirectoryListing],
    catalog: Mapping[str, CatalogTopic],
    deleted_ids: AbstractSet[bytes],
) -> _TopicListing:
    """Choose one directory of each topic."""
    current = {name: topic.directory for name, topic in catalog.items()}
    for directory in sorted(listings, key=lambda each: (listings[each].modified_ms, each)):
        name = topic_of_directory(directory)
        if name not in catalog and id_of_directory(directory) not in deleted_ids:
            current[name] = directory
    chosen = _TopicListing({}, [], set())
    for name, directory in current.items():
        if (listing := listings.get(directory)) is not None:
            for partition, segments in listing.segments.items():
                chosen.segments[name, partition] = segments
            chosen.with_log_start.extend((directory, each) for each in listing.with_log_start)
            chosen.with_transactions.update((name, each) for each in listing.with_transactions)
    return chosen


async def _read_segment_ends(store: ObjectStore, segments: _Segments) -> dict[TopicPartition, int]:
    async def read(of_partition: list[tuple[str, int, int]]) -> int:
        return (await read_segment_footer(store, of_partition[-1][0])).last_offset + 1

    ends = await map_limited(read, segments.values(), READS_MAX)
    return dict(zip(segments, ends, strict=True))


async def _read_catalog(store: ObjectStore, namespace: str) -> tuple[Catalog, int]:
    """Read the topic catalog that brokers publish, if any, and when it was written."""
    try:
        return await topic_catalog.read(store, namespace)
    except ObjectNotFoundError:
        return Catalog(()), -1
