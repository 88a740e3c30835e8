"""A log of keyed records in memory, and compaction without Spark or brokers."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Self

from kafscale.records import BatchView, Record, build, iterate
from kafscale.records.batch import DELETE_HORIZON_BIT
from kafscale.spark.jobs.compact.job import CompactSettings, find_due
from kafscale.spark.jobs.compact.key_scan import scan_keys
from kafscale.spark.jobs.compact.plan import CompactionPlan
from kafscale.spark.jobs.compact.segment_rewrite import rewrite_group
from kafscale.spark.jobs.compact.surviving_offsets import store_survivors, survivors_by_segment
from kafscale.spark.jobs.shared.segment_install import SwapOutcome
from kafscale.spark.jobs.shared.staging import StagedSegment
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.plan.task_planner import OffsetRange, plan
from kafscale.spark.read.bucket_listing import BucketLister, list_bucket
from kafscale.spark.read.slice_reader import SliceReader
from kafscale.storage import topic_catalog
from kafscale.storage.compaction.checkpoint import write_checkpoint
from kafscale.storage.formats import object_keys, segment, wal_object
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.topic_catalog import CatalogTopic

TOPIC = "customers"
TOPIC_ID = b"c" * 16
NOW_MS = 1_750_000_000_000

Pair = tuple[bytes | None, bytes | None]


class MemoryLocation:
    """Stands for a `Location`: a store in memory that all tasks share."""

    namespace = "default"

    def __init__(self, objects: MemoryObjectStore | None = None) -> None:
        self.objects = objects or MemoryObjectStore(lambda: NOW_MS)

    def open(self) -> BlockingObjectStore:
        return BlockingObjectStore(lambda: self.objects)


class KeyedLog:
    """One partition, whose segments and WAL objects tests write directly."""

    def __init__(self, **configs: str) -> None:
        self.location = MemoryLocation()
        self.store = self.location.open()
        self.next_offset = 0
        self.time_ms = NOW_MS
        self._sequence = 0
        self.configure(**configs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def configure(self, **configs: str) -> None:
        """Write the topic's configs to the catalog; underscores in names stand for dots."""
        named = {name.replace("_", "."): value for name, value in configs.items()}
        topics = [CatalogTopic(TOPIC, TOPIC_ID.hex(), 1, {"cleanup.policy": "compact"} | named)]
        key = object_keys.catalog_key(self.location.namespace)
        self.store.put(key, [topic_catalog.encode(topics)], create=False)

    # --- writing ------------------------------------------------------------------------------

    def batch(self, pairs: Sequence[Pair], **fields: Any) -> BatchView:
        """Return the next batch of the log; timestamps are a millisecond apart."""
        records = [
            Record(self.next_offset + number, self.time_ms + number, key, value)
            for number, (key, value) in enumerate(pairs)
        ]
        self.next_offset += len(records)
        self.time_ms += len(records)
        return BatchView(build(records, **fields))

    def put_segment(self, batches: Sequence[BatchView], *, prior_ms: int | None = None) -> str:
        builder = segment.Builder(
            self.time_ms, 1, compression=None, prior_max_timestamp_ms=prior_ms
        )
        for each in batches:
            builder.append(each)
        built = builder.finish()
        parts = (self.location.namespace, TOPIC, 0, built.base_offset)
        self.store.put(object_keys.segment_key(*parts), built.parts, create=False)
        self.store.put(object_keys.index_key(*parts), [built.index], create=False)
        return object_keys.segment_key(*parts)

    def put_pairs(self, *batches: Sequence[Pair]) -> str:
        """Write a segment with a batch for each list of keys and values."""
        return self.put_segment([self.batch(pairs) for pairs in batches], prior_ms=self.time_ms)

    def put_wal(self, batches: Sequence[BatchView]) -> str:
        pieces = [
            wal_object.PartitionData(
                TOPIC_ID,
                TOPIC,
                0,
                each.buffer,
                each.base_offset,
                each.last_offset,
                each.max_timestamp_ms,
            )
            for each in batches
        ]
        key = object_keys.wal_key(self.location.namespace, 0, 0, self._sequence)
        self.store.put(key, wal_object.encode(wal_object.Header(0, 0, self._sequence, 0), pieces))
        self._sequence += 1
        return key

    # --- reading ------------------------------------------------------------------------------

    def offset_map(self) -> OffsetMap:
        return list_bucket(self.store, self.location.namespace, [TOPIC])

    def batches(self) -> list[BatchView]:
        """Return all batches, as readers see them."""
        offset_map = self.offset_map()
        partition = offset_map.partitions[TOPIC, 0]
        ranges = [OffsetRange(TOPIC, 0, partition.start_offset, partition.end_offset)]
        reader = SliceReader(self.store, self.location.namespace)
        return [
            BatchView(bytes(each.buffer))
            for task in plan(offset_map, ranges)
            for part in task.slices
            for read in reader.read(part)
            for each in read.batches
        ]

    def records(self) -> list[Record]:
        return [record for batch in self.batches() for record in iterate(batch)]

    def segment_bases(self) -> list[int]:
        return [each.start_offset for each in self.offset_map().partitions[TOPIC, 0].extents]

    # --- compacting ---------------------------------------------------------------------------

    def compact(self, now_ms: int = NOW_MS, **options: Any) -> list[StagedSegment]:
        return compact(self.location, self.store, now_ms, **options)

    def find_survivors(
        self, planned: CompactionPlan, offset_map: OffsetMap, now_ms: int
    ) -> dict[int, int]:
        return find_survivors(planned, offset_map, now_ms)


def compact(
    location: MemoryLocation, store: BlockingObjectStore, now_ms: int, **options: Any
) -> list[StagedSegment]:
    """Do what `compact.run` does, with a shuffle in memory, and swap without checks."""
    settings = CompactSettings(location=location, control=(), topics=(TOPIC,), **options)
    lister = BucketLister(store, location.namespace)
    offset_map, due, _ = find_due(store, lister, settings, now_ms)
    planned = CompactionPlan(location, due, "run", settings.target_bytes)
    counts = find_survivors(planned, offset_map, now_ms)
    opened = lister.open_producers(offset_map, planned.group_starts)
    rewritten = [
        rewrite_group(location, "run", now_ms, item) for item in planned.rewrites(counts, opened)
    ]
    store.delete(planned.survivor_keys(counts))
    staged = [each for each in rewritten if each is not None]
    for each in staged:
        _swap(store, each)
    ends = planned.clean_ends(counts, [SwapOutcome(each) for each in staged], [])
    for topic, own in ends.items():
        store.run(
            lambda objects, topic=topic, own=own: write_checkpoint(
                objects, location.namespace, topic, TOPIC_ID, own
            )
        )
    return staged


def find_survivors(planned: CompactionPlan, offset_map: OffsetMap, now_ms: int) -> dict[int, int]:
    key_scan = planned.key_scan(offset_map, Random(0).randbytes(16), now_ms)
    rows = (row for index in range(len(key_scan.tasks)) for row in scan_keys(key_scan, index))
    offsets = (
        row
        for bucket in _shuffle(rows).values()
        for row in survivors_by_segment(planned.survivor_store, bucket)
    )
    return {
        segment: count
        for bucket in _shuffle(offsets).values()
        for segment, count in store_survivors(planned.survivor_store, bucket)
    }


def _swap(store: BlockingObjectStore, staged: StagedSegment) -> None:
    first, *others = staged.group.sources
    store.put(first.key, [bytes(store.get(staged.key))], create=False)
    stems = [other.key.removesuffix(object_keys.SEGMENT_SUFFIX) for other in (first, *others)]
    store.delete([stem + object_keys.INDEX_SUFFIX for stem in stems])
    store.delete([staged.key, *(other.key for other in others)])


def delete_horizon_ms(batch: BatchView) -> int | None:
    """When tombstones of a batch may be removed; None if not set."""
    return batch.base_timestamp_ms if batch.attributes & DELETE_HORIZON_BIT else None


def _shuffle(rows: Iterator[tuple[int, bytes]]) -> dict[int, list[tuple[int, bytes]]]:
    buckets: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for number, data in rows:
        buckets[number].append((number, data))
    return buckets
