"""Looks up offsets by timestamp: the first record at or after it, like ListOffsets of a broker.

Timestamps of producers need not ascend, but the maximum timestamp of a log up to the end of each
segment does, and indexes store it. So the segment is found by binary search, and the offsets within
it by its index. If an index lacks timestamps (written by upstream, rebuilt, or missing), records
are read one by one. `SliceReader` handles segments that are rolled, merged or deleted meanwhile.
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
"""The number of partitions that are searched concurrently."""


def offset_for_timestamp(
    store: BlockingObjectStore, namespace: str, partition: PartitionOffsets, timestamp_ms: int
) -> int | None:
    """Return the offset of the first record at or after a timestamp; None if all are older."""
    reader = SliceReader(store, namespace, fail_on_data_loss=False)
    for start, end in _candidates(Prefetcher(store, namespace), partition, timestamp_ms):
        extents = tuple(partition.extents_between(start, end))
        for group in reader.read(Slice(partition.topic, partition.partition, start, end, extents)):
            for batch in group.batches:
                offset = _first_in(batch, timestamp_ms, start)
                if offset is not None and offset < partition.end_offset:
                    return offset
    return None


def offsets_for_timestamps(
    store: BlockingObjectStore,
    namespace: str,
    timestamps_ms: Mapping[TopicPartition, int],
    partitions: Mapping[TopicPartition, PartitionOffsets],
) -> dict[TopicPartition, int | None]:
    """Look up many partitions concurrently, each with its own timestamp."""
    topic_partitions = [key for key in timestamps_ms if key in partitions]
    with ThreadPoolExecutor(SEARCHES_MAX, thread_name_prefix="timestamp-lookup") as threads:
        offsets = threads.map(
            lambda key: offset_for_timestamp(store, namespace, partitions[key], timestamps_ms[key]),
            topic_partitions,
        )
        return dict(zip(topic_partitions, offsets, strict=True))


def _candidates(
    prefetcher: Prefetcher, partition: PartitionOffsets, timestamp_ms: int
) -> Iterator[tuple[int, int]]:
    """Yield ascending offset ranges that include every record at or after the timestamp."""
    extents = partition.extents_between(partition.start_offset, partition.end_offset)
    segments = [extent for extent in extents if not extent.is_wal]
    for extent in segments[_first_segment(prefetcher, segments, timestamp_ms) :]:
        yield from _candidates_in_segment(prefetcher, extent, timestamp_ms)
    for extent in extents[len(segments) :]:
        if extent.max_timestamp_ms is None or extent.max_timestamp_ms >= timestamp_ms:
            yield extent.start_offset, extent.end_offset


def _first_segment(prefetcher: Prefetcher, segments: Sequence[Extent], timestamp_ms: int) -> int:
    """Return the index of the first segment that can hold such a record."""
    low, high = 0, len(segments)
    while low < high:
        middle = (low + high) // 2
        index = prefetcher.read_index(segments[middle].key)
        max_timestamp_ms = index.log_max_timestamp_ms if index else None
        if max_timestamp_ms is None:
            return 0  # Unknown: search all segments.
        if max_timestamp_ms >= timestamp_ms:
            high = middle
        else:
            low = middle + 1
    return low


def _candidates_in_segment(
    prefetcher: Prefetcher, extent: Extent, timestamp_ms: int
) -> Iterator[tuple[int, int]]:
    """Yield offset ranges within a segment, according to its index."""
    index = prefetcher.read_index(extent.key)
    if index is None or index.max_timestamps is None:
        yield extent.start_offset, extent.end_offset
        return
    starts = [*index.offsets, extent.end_offset]
    for (start, end), max_timestamp_ms in zip(pairwise(starts), index.max_timestamps, strict=True):
        start, end = max(start, extent.start_offset), min(end, extent.end_offset)  # noqa: PLW2901
        if max_timestamp_ms >= timestamp_ms and start < end:
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
