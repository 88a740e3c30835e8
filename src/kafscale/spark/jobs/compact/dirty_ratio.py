"""How old what is dirty is, asked of indexes and batches: what the rules of compaction go by.

The greatest time of a log up to the end of each segment ascends, whatever producers say, and
indexes keep it; so the first segment that is too young is found by looking at few of them. Where an
index does not know, segments are looked at one by one, and an object's own time stands in for times
that nobody has kept.
"""

from bisect import bisect_right
from contextlib import suppress

from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.records.batch import HEADER, HEADER_BYTES, BatchHeader
from kafscale.spark.jobs.compact.candidates import Candidate
from kafscale.spark.jobs.merge.grouping import segments_of
from kafscale.spark.plan.offset_map import Extent, PartitionOffsets
from kafscale.storage.formats import index, object_keys
from kafscale.storage.formats.index import Index
from kafscale.storage.objects.blocking import BlockingObjectStore


def head_start(store: BlockingObjectStore, found: PartitionOffsets, limit_ms: int) -> int | None:
    """Where the first segment begins that has a record after a time; None if none has."""
    segments = segments_of(found)

    def reached(source: Extent) -> bool:
        entries = _index(store, source)
        greatest_ms = entries.log_max_timestamp_ms if entries else None
        if greatest_ms is None:
            raise LookupError
        return greatest_ms > limit_ms

    try:
        first = bisect_right(segments, False, key=reached)
    except LookupError:
        young = (each for each in segments if _newest_ms(store, each) > limit_ms)
        return next((each.start_offset for each in young), None)
    return segments[first].start_offset if first < len(segments) else None


def dirty_since_ms(store: BlockingObjectStore, candidate: Candidate) -> int | None:
    """The time of the first batch that was never compacted; None if there is none any more."""
    dirty = [each for each in candidate.cleanable if each.end_offset > candidate.clean_end]
    if dirty:
        start = dirty[0].position
        with suppress(ObjectNotFoundError):
            head = store.get_range(dirty[0].key, start, start + HEADER_BYTES)
            return BatchHeader._make(HEADER.unpack_from(head)).max_timestamp_ms
    return None


def _newest_ms(store: BlockingObjectStore, source: Extent) -> int:
    entries = _index(store, source)
    newest_ms = entries.max_timestamp_ms if entries else None
    if newest_ms is not None and newest_ms >= 0:
        return newest_ms
    return store.head(source.key).modified_ms


def _index(store: BlockingObjectStore, source: Extent) -> Index | None:
    key = source.key.removesuffix(object_keys.SEGMENT_SUFFIX) + object_keys.INDEX_SUFFIX
    with suppress(ObjectNotFoundError, DamagedObjectError):
        return index.decode(key, store.get(key))
    return None
