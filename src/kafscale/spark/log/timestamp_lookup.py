"""Which offset belongs to a time: that of the first record at or after it, as brokers answer.

Producers' times need not ascend, but the greatest time of a log up to the end of each segment does,
and indexes keep it: so the segment is found by binary search, and the stretch within it by its
index. Where an index does not know (upstream wrote it, it was rebuilt, it is gone), records are
looked at one by one. What is rolled, merged or deleted meanwhile is found by `SliceReader`.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final

from kafscale.records import BatchView, iterate
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets, TopicPartition
from kafscale.spark.plan.task_planner import Slice
from kafscale.spark.read.prefetcher import Prefetcher
from kafscale.spark.read.slice_reader import SliceReader
from kafscale.storage.objects.blocking import BlockingObjectStore

SEARCHES_MAX: Final = 16
"""How many partitions are searched at a time."""


def offset_for_timestamp(
    store: BlockingObjectStore, namespace: str, found: PartitionOffsets, timestamp_ms: int
) -> int | None:
    """The offset of the first record at or after a time; None if all are older."""
    reader = SliceReader(store, namespace, fail_on_data_loss=False)
    for start, end in _stretches(Prefetcher(store, namespace), found, timestamp_ms):
        extents = tuple(found.extents_between(start, end))
        for batches in reader.read(Slice(found.topic, found.partition, start, end, extents)):
            for batch in batches.batches:
                offset = _first_in(batch, timestamp_ms, start)
                if offset is not None and offset < found.end_offset:
                    return offset
    return None


def offsets_for_timestamps(
    store: BlockingObjectStore,
    namespace: str,
    wanted: Mapping[TopicPartition, int],
    partitions: Mapping[TopicPartition, PartitionOffsets],
) -> dict[TopicPartition, int | None]:
    """The same for many partitions at once, each with a time of its own."""
    places = [place for place in wanted if place in partitions]
    with ThreadPoolExecutor(SEARCHES_MAX, thread_name_prefix="times") as threads:
        offsets = threads.map(
            lambda place: offset_for_timestamp(store, namespace, partitions[place], wanted[place]),
            places,
        )
        return dict(zip(places, offsets, strict=True))


def _stretches(
    fetcher: Prefetcher, found: PartitionOffsets, timestamp_ms: int
) -> Iterator[tuple[int, int]]:
    """Offsets in ascending order, among which all records are that have reached the time."""
    extents = found.extents_between(found.start_offset, found.end_offset)
    segments = [extent for extent in extents if not extent.is_wal]
    for extent in segments[_first_segment(fetcher, segments, timestamp_ms) :]:
        yield from _stretches_of(fetcher, extent, timestamp_ms)
    for extent in extents[len(segments) :]:
        if extent.max_timestamp_ms is None or extent.max_timestamp_ms >= timestamp_ms:
            yield extent.start_offset, extent.end_offset


def _first_segment(fetcher: Prefetcher, segments: Sequence[Extent], timestamp_ms: int) -> int:
    """The number of the first segment that can hold a record at or after the time."""
    low, high = 0, len(segments)
    while low < high:
        middle = (low + high) // 2
        entries = fetcher.index(segments[middle].key)
        reached_ms = entries.log_max_timestamp_ms if entries else None
        if reached_ms is None:
            return 0  # Nobody knows: look at all.
        if reached_ms >= timestamp_ms:
            high = middle
        else:
            low = middle + 1
    return low


def _stretches_of(
    fetcher: Prefetcher, extent: Extent, timestamp_ms: int
) -> Iterator[tuple[int, int]]:
    """The same within a segment, as far as its index tells."""
    entries = fetcher.index(extent.key)
    if entries is None or entries.max_timestamps is None:
        yield extent.start_offset, extent.end_offset
        return
    starts = [*entries.offsets, extent.end_offset]
    for (start, end), reached_ms in zip(pairwise(starts), entries.max_timestamps, strict=True):
        start, end = max(start, extent.start_offset), min(end, extent.end_offset)  # noqa: PLW2901
        if reached_ms >= timestamp_ms and start < end:
            yield start, end


def _first_in(batch: BatchView, timestamp_ms: int, start_offset: int) -> int | None:
    if batch.max_timestamp_ms < timestamp_ms or batch.is_control:
        return None
    return next(
        (
            record.offset
            for record in iterate(batch)
            if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset
        ),
        None,
    )
