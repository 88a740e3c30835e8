"""Looks up offsets by timestamp: the first record at or after it, like ListOffsets of a broker.

The segment is found as in `storage.log.timestamp_lookup`, and the offsets within it by its index.
If an index is missing or lacks timestamps, records are read one by one. `SliceReader` handles
segments that are rolled, merged or deleted meanwhile.
"""

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

from kafscale.spark.plan.offset_map import Extent, PartitionOffsets
from kafscale.spark.plan.task_planner import Slice
from kafscale.spark.read.slice_reader import SliceReader
from kafscale.storage.bucket import read_index
from kafscale.storage.formats.index import Index
from kafscale.storage.log import timestamp_lookup
from kafscale.storage.log.timestamp_lookup import first_record
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import ObjectStore
from kafscale.text.topic_partition import TopicPartition

SEARCHES_MAX: Final = 16
"""The number of partitions that are searched concurrently."""


def offset_for_timestamp(
    store: BlockingObjectStore, namespace: str, partition: PartitionOffsets, timestamp_ms: int
) -> int | None:
    """Return the offset of the first record at or after a timestamp; None if all are older."""
    reader = SliceReader(store, namespace, fail_on_data_loss=False)
    for start, end in _candidates(store, partition, timestamp_ms):
        extents = tuple(partition.extents_between(start, end))
        for group in reader.read(Slice(partition.topic, partition.partition, start, end, extents)):
            for batch in group.batches:
                record = None if batch.is_control else first_record(batch, timestamp_ms, start)
                if record is not None and record.offset < partition.end_offset:
                    return record.offset
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
    store: BlockingObjectStore, partition: PartitionOffsets, timestamp_ms: int
) -> Iterator[tuple[int, int]]:
    """Yield ascending offset ranges that include every record at or after the timestamp."""
    extents = partition.extents_between(partition.start_offset, partition.end_offset)
    segments = [extent for extent in extents if not extent.is_wal]
    for extent in segments[first_segment(store, segments, timestamp_ms) or 0 :]:
        yield from _candidates_in_segment(store, extent, timestamp_ms)
    for extent in extents[len(segments) :]:
        if extent.max_timestamp_ms is None or extent.max_timestamp_ms >= timestamp_ms:
            yield extent.start_offset, extent.end_offset


def first_segment(
    store: BlockingObjectStore, segments: Sequence[Extent], timestamp_ms: int
) -> int | None:
    """See `storage.log.timestamp_lookup.first_segment`."""
    return store.run(
        lambda objects: timestamp_lookup.first_segment(
            len(segments), lambda number: _read_index(objects, segments[number]), timestamp_ms
        )
    )


def _read_index(store: ObjectStore, extent: Extent) -> Coroutine[Any, Any, Index | None]:
    return read_index(store, extent.key, extent.segment_bytes)


def _candidates_in_segment(
    store: BlockingObjectStore, extent: Extent, timestamp_ms: int
) -> Iterator[tuple[int, int]]:
    """Yield offset ranges within a segment, according to its index."""
    index = store.run(lambda objects: _read_index(objects, extent))
    if index is None or index.max_timestamps is None:
        yield extent.start_offset, extent.end_offset
        return
    starts = [*index.offsets, extent.end_offset]
    for (start, end), max_timestamp_ms in zip(pairwise(starts), index.max_timestamps, strict=True):
        start, end = max(start, extent.start_offset), min(end, extent.end_offset)  # noqa: PLW2901
        if max_timestamp_ms >= timestamp_ms and start < end:
            yield start, end
