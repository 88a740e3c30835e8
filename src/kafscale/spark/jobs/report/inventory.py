"""Measures the usage of each topic: bytes, records, timestamps and compression.

A task reads the header, the index and the first bytes of each segment: the number of records, their
timestamps and codec. For some segments of each partition it also decompresses a few batches to
estimate the uncompressed size. The usage of the WAL is known from its footers.

Invariants: nothing is counted twice, because the extents of an `OffsetMap` do not overlap. A task
returns one `PartitionUsage` for each partition, and usages add up in any order. An object that was
deleted in the meantime is omitted; a damaged one is counted by its size and reported.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from kafscale.aio.gather import map_limited
from kafscale.errors import DamagedObjectError, ObjectNotFoundError, RecordsError
from kafscale.records import inflate, split
from kafscale.records.batch import HEADER, LENGTH_OVERHEAD_BYTES, BatchHeader, check_magic
from kafscale.records.batch import HEADER_BYTES as BATCH_HEADER_BYTES
from kafscale.records.compression import codec_of
from kafscale.spark.plan.offset_map import Extent, OffsetMap, PartitionOffsets
from kafscale.spark.read.location import Location
from kafscale.storage.bucket import list_objects
from kafscale.storage.formats import index, object_keys, segment
from kafscale.storage.objects.store import ObjectStore
from kafscale.text.topic_partition import TopicPartition

DAY_MS: Final = 86_400_000

TASK_SEGMENTS: Final = 256
"""How many segments one task reads: each needs few requests, which run concurrently."""

READS_MAX: Final = 32

SAMPLES_MAX: Final = 8
"""How many segments of a partition are sampled, evenly spaced."""

SAMPLE_BYTES: Final = 256 * 1024
"""How much is read of a sampled segment; more if its first batch is larger."""

SPAN_MS_MIN: Final = 60_000
"""A shorter time span is not extrapolated to a day."""

_HEAD_BYTES: Final = segment.HEADER_BYTES + BATCH_HEADER_BYTES


class SegmentItem(msgspec.Struct, frozen=True):
    """A segment to measure."""

    topic_partition: TopicPartition
    key: str
    size_bytes: int
    is_sampled: bool


class PartitionUsage(msgspec.Struct):
    """The usage of a partition, or of a part of it."""

    topic_partition: TopicPartition
    segments: int = 0
    segment_bytes: int = 0
    index_bytes: int = 0
    wal_bytes: int = 0
    records: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None
    sampled_bytes: int = 0
    """Stored bytes of the sampled batches."""
    inflated_bytes: int = 0
    """Uncompressed bytes of the sampled batches."""
    codecs: Counter[str] = msgspec.field(default_factory=Counter)
    """Bytes of the batches that were read, by codec."""
    days: Counter[int] = msgspec.field(default_factory=Counter)
    """Bytes by day, counted from 1970."""
    sizes: Counter[int] = msgspec.field(default_factory=Counter)
    """Number of segments by the bit length of their size: up to 1 KiB, up to 2 KiB, ..."""
    damaged: list[str] = []

    def add(self, other: "PartitionUsage") -> None:
        """Add another usage of the same partition."""
        assert self.topic_partition == other.topic_partition
        self.segments += other.segments
        self.segment_bytes += other.segment_bytes
        self.index_bytes += other.index_bytes
        self.wal_bytes += other.wal_bytes
        self.records += other.records
        self.sampled_bytes += other.sampled_bytes
        self.inflated_bytes += other.inflated_bytes
        self.codecs += other.codecs
        self.days += other.days
        self.sizes += other.sizes
        self.damaged += other.damaged
        for time_ms in (other.oldest_ms, other.newest_ms):
            if time_ms is not None:
                self.add_timestamp(time_ms)

    def add_timestamp(self, time_ms: int) -> None:
        """Extend the time range to a timestamp."""
        if time_ms >= 0:
            self.oldest_ms = time_ms if self.oldest_ms is None else min(self.oldest_ms, time_ms)
            self.newest_ms = time_ms if self.newest_ms is None else max(self.newest_ms, time_ms)

    @property
    def stored_bytes(self) -> int:
        return self.segment_bytes + self.index_bytes + self.wal_bytes


# --- driver ---------------------------------------------------------------------------------------


def plan(offset_map: OffsetMap) -> list[tuple[SegmentItem, ...]]:
    """Split all segments into tasks."""
    items = [
        item for partition in offset_map.partitions.values() for item in _segment_items(partition)
    ]
    return [
        tuple(items[start : start + TASK_SEGMENTS]) for start in range(0, len(items), TASK_SEGMENTS)
    ]


def sum_usages(
    offset_map: OffsetMap, results: Iterable[Sequence[PartitionUsage]]
) -> dict[TopicPartition, PartitionUsage]:
    """Return the usage of every partition, including empty ones."""
    total = {key: _wal_usage(partition) for key, partition in offset_map.partitions.items()}
    for usages in results:
        for usage in usages:
            total[usage.topic_partition].add(usage)
    return total


def _segment_items(partition: PartitionOffsets) -> Iterator[SegmentItem]:
    segments = [extent for extent in partition.extents if not extent.is_wal]
    stride = max(-(-len(segments) // SAMPLES_MAX), 1)
    for number, extent in enumerate(segments):
        size_bytes = extent.position + extent.length + segment.FOOTER_BYTES
        is_sampled = number % stride == 0
        topic_partition = (partition.topic, partition.partition)
        yield SegmentItem(topic_partition, extent.key, size_bytes, is_sampled)


def _wal_usage(partition: PartitionOffsets) -> PartitionUsage:
    usage = PartitionUsage((partition.topic, partition.partition))
    for extent in partition.extents:
        if extent.is_wal:
            _add_extent(usage, extent)
    return usage


def _add_extent(usage: PartitionUsage, extent: Extent) -> None:
    usage.wal_bytes += extent.length
    usage.records += extent.end_offset - extent.start_offset
    if extent.max_timestamp_ms is not None:
        usage.add_timestamp(extent.max_timestamp_ms)
        usage.days[max(extent.max_timestamp_ms, 0) // DAY_MS] += extent.length


# --- task -----------------------------------------------------------------------------------------


def measure(location: Location, items: Sequence[SegmentItem]) -> list[PartitionUsage]:
    """Run a task: measure segments, and sum up their usage by partition."""
    with location.open() as store:
        return store.run(lambda objects: measure_segments(objects, items))


async def measure_segments(
    store: ObjectStore, items: Sequence[SegmentItem]
) -> list[PartitionUsage]:
    usages: dict[TopicPartition, PartitionUsage] = {}
    measure_one = partial(_measure_segment, store)
    for usage in await map_limited(measure_one, items, READS_MAX):
        if usage is not None:
            key = usage.topic_partition
            usages.setdefault(key, PartitionUsage(key)).add(usage)
    return list(usages.values())


async def _measure_segment(store: ObjectStore, item: SegmentItem) -> PartitionUsage | None:
    """Measure a segment; None if it no longer exists."""
    usage = PartitionUsage(item.topic_partition, segments=1, segment_bytes=item.size_bytes)
    usage.sizes[item.size_bytes.bit_length()] += 1
    try:
        read_bytes = SAMPLE_BYTES if item.is_sampled else _HEAD_BYTES
        head = await store.get_range(item.key, 0, min(item.size_bytes, read_bytes))
        header = segment.decode_header(item.key, head)
        first = _first_batch(item, head)
        usage.records = header.count
        usage.add_timestamp(first.base_timestamp_ms)
        usage.add_timestamp(first.max_timestamp_ms)
        if item.is_sampled:
            await _sample(store, item, head, usage)
        else:
            usage.codecs[_codec_name(first)] += first.length + LENGTH_OVERHEAD_BYTES
        await _add_days(store, item, header, usage)
    except ObjectNotFoundError:
        return None
    except (DamagedObjectError, RecordsError) as error:
        usage.damaged.append(f"{item.key}: {getattr(error, 'reason', error)}")
    return usage


async def _sample(
    store: ObjectStore, item: SegmentItem, head: memoryview, usage: PartitionUsage
) -> None:
    """Decompress the first batches of a segment, at least one."""
    end = segment.HEADER_BYTES + _first_batch(item, head).length + LENGTH_OVERHEAD_BYTES
    if end > len(head):
        head = await store.get_range(item.key, 0, end)
    body_end = min(len(head), item.size_bytes - segment.FOOTER_BYTES)
    for batch in split(head[segment.HEADER_BYTES : body_end], partial_ok=True):
        batch.verify_checksum()
        usage.codecs[_codec_name(batch.header())] += len(batch)
        usage.sampled_bytes += len(batch)
        usage.inflated_bytes += BATCH_HEADER_BYTES + len(inflate(batch))


async def _add_days(
    store: ObjectStore, item: SegmentItem, header: segment.Header, usage: PartitionUsage
) -> None:
    """Add bytes by day from the timestamps in the index, or from the creation of the segment."""
    key = object_keys.index_key_of(item.key)
    try:
        data = await store.get(key)
        usage.index_bytes = len(data)
        entries = index.decode(key, data, item.size_bytes)
    except (ObjectNotFoundError, DamagedObjectError):
        entries = None  # It can be rebuilt from the segment.
    if entries is None or entries.max_timestamps is None:
        usage.days[max(header.created_ms, 0) // DAY_MS] += item.size_bytes
        return
    ends = [*entries.positions[1:], item.size_bytes]
    for start, end, time_ms in zip(entries.positions, ends, entries.max_timestamps, strict=True):
        usage.add_timestamp(time_ms)
        usage.days[_arrival_ms(time_ms, header.created_ms) // DAY_MS] += end - start


def _arrival_ms(time_ms: int, created_ms: int) -> int:
    """Estimate when a record arrived: at its timestamp, or when its segment was created.

    The timestamp is ignored if it is missing or later than the segment.
    """
    if time_ms <= 0 or 0 < created_ms < time_ms:
        return max(created_ms, 0)
    return time_ms


def _first_batch(item: SegmentItem, head: memoryview) -> BatchHeader:
    """Return the header of the first batch of a segment, which must fit into the segment."""
    if len(head) < _HEAD_BYTES:
        raise DamagedObjectError(item.key, f"{len(head)} bytes are too few for a batch")
    header = BatchHeader._make(HEADER.unpack_from(head, segment.HEADER_BYTES))
    check_magic(header.magic)
    body_bytes = item.size_bytes - segment.HEADER_BYTES - segment.FOOTER_BYTES
    if not BATCH_HEADER_BYTES <= header.length + LENGTH_OVERHEAD_BYTES <= body_bytes:
        raise DamagedObjectError(
            item.key, f"its first batch has an invalid length of {header.length} bytes"
        )
    return header


def _codec_name(header: BatchHeader) -> str:
    return codec_of(header.attributes).name.lower()


# --- WAL ------------------------------------------------------------------------------------------


class WalActivity(msgspec.Struct, frozen=True):
    """What brokers have written during the last day."""

    brokers: int
    """The number of brokers that have written."""
    puts_per_day: float | None
    """WAL objects per day; None if the time span is too short."""


async def wal_activity(store: ObjectStore, namespace: str, now_ms: int) -> WalActivity:
    """Estimate the write rate of brokers from the keys and times of their WAL objects.

    Sequences of a stream have no gaps, so the first and the last remaining object show how many
    were written in between, including those that were trimmed.
    """
    written: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    async for ref, item in list_objects(store, namespace, object_keys.wal_root(namespace)):
        if isinstance(ref, object_keys.WalRef) and now_ms - item.modified_ms < DAY_MS:
            written[ref.broker_id, ref.epoch].append((ref.sequence, item.modified_ms))
    if not written:
        return WalActivity(0, None)
    span_ms = now_ms - min(modified_ms for items in written.values() for _, modified_ms in items)
    puts = sum(max(items)[0] - min(items)[0] for items in written.values())
    return WalActivity(
        brokers=len({broker_id for broker_id, _ in written}),
        puts_per_day=puts * DAY_MS / span_ms if span_ms >= SPAN_MS_MIN else None,
    )
