"""Reads from the bucket the timestamps that decide whether a partition is dirty.

The first segment of the head is found by a lookup by timestamp. If an index is missing or does not
have timestamps, segments are checked one by one, and the modification time of an object stands in
for timestamps that are not stored.
"""

from contextlib import suppress

from kafscale.errors import ObjectNotFoundError
from kafscale.records.batch import HEADER, HEADER_BYTES, BatchHeader
from kafscale.spark.jobs.compact.candidates import Candidate
from kafscale.spark.jobs.shared.segment_group import segments_of
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets
from kafscale.spark.read.timestamp_lookup import first_segment
from kafscale.storage.bucket import read_index
from kafscale.storage.objects.blocking import BlockingObjectStore


def head_start(
    store: BlockingObjectStore, partition: PartitionOffsets, limit_ms: int
) -> int | None:
    """Return the start of the first segment with a record after a time; None if there is none."""
    segments = segments_of(partition)
    first = first_segment(store, segments, limit_ms + 1)
    if first is None:
        young = (each for each in segments if _max_timestamp_ms(store, each) > limit_ms)
        return next((each.start_offset for each in young), None)
    return segments[first].start_offset if first < len(segments) else None


def dirty_since_ms(store: BlockingObjectStore, candidate: Candidate) -> int | None:
    """Return the time of the first dirty batch; None if it no longer exists."""
    dirty = [each for each in candidate.cleanable if each.end_offset > candidate.clean_end]
    if dirty:
        start = dirty[0].position
        with suppress(ObjectNotFoundError):
            head = store.get_range(dirty[0].key, start, start + HEADER_BYTES)
            return BatchHeader._make(HEADER.unpack_from(head)).max_timestamp_ms
    return None


def _max_timestamp_ms(store: BlockingObjectStore, source: Extent) -> int:
    entries = store.run(lambda objects: read_index(objects, source.key, source.segment_bytes))
    greatest_ms = entries.max_timestamp_ms if entries else None
    if greatest_ms is not None and greatest_ms >= 0:
        return greatest_ms
    return store.head(source.key).modified_ms
