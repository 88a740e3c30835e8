"""Checks that the segments of a partition have contiguous offsets, and the WAL continues them.

Segments that were read at different times may not fit although no offset is missing, because
segments were swapped in between. If they do not fit, the keys and footers of the partition are
listed again until two listings are equal.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final

from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.spark.jobs.scrub.listing import Finding, FindingKind
from kafscale.spark.jobs.scrub.task import CheckedSegment
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.storage.bucket import list_segments, read_segment_footer
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import ObjectStore
from kafscale.text.topic_partition import TopicPartition

LISTINGS_MAX: Final = 10

_Ends = Mapping[int, int | None]
"""The end offset of each segment by its base offset; None if it is damaged."""


def check_segments(
    store: BlockingObjectStore, namespace: str, checked: Iterable[CheckedSegment]
) -> Iterator[Finding]:
    """Return offsets that are missing between segments, or in two of them."""
    ordered = sorted(checked, key=attrgetter("topic_partition", "base_offset"))
    for topic_partition, segments in groupby(ordered, key=attrgetter("topic_partition")):
        ends: _Ends = {each.base_offset: each.next_offset for each in segments}
        if not _is_contiguous(ends):
            ends = _stable_ends(store, namespace, topic_partition)
            yield from _findings(namespace, topic_partition, ends)


def check_wal(offset_map: OffsetMap) -> list[Finding]:
    """Return offsets that are missing between segments and the WAL, or within the WAL."""
    return [
        _gap(topic_partition, before.end_offset, after.start_offset, after.key)
        for topic_partition, partition in offset_map.partitions.items()
        for before, after in pairwise(partition.extents)
        if after.is_wal and before.end_offset < after.start_offset
    ]


def _is_contiguous(ends: _Ends) -> bool:
    return all(ends[base] in (None, after) for base, after in pairwise(sorted(ends)))


def _stable_ends(
    store: BlockingObjectStore, namespace: str, topic_partition: TopicPartition
) -> _Ends:
    """List the segments of a partition until two listings are equal."""
    ends: _Ends = {}
    for _ in range(LISTINGS_MAX):
        before, ends = ends, store.run(partial(_list_ends, namespace, topic_partition))
        if ends == before:
            break
    return ends


async def _list_ends(namespace: str, topic_partition: TopicPartition, store: ObjectStore) -> _Ends:
    ends: dict[int, int | None] = {}
    prefix = object_keys.partition_prefix(namespace, *topic_partition)
    async for ref, item in list_segments(store, namespace, prefix):
        try:
            ends[ref.base_offset] = (await read_segment_footer(store, item.key)).last_offset + 1
        except DamagedObjectError:
            ends[ref.base_offset] = None
        except ObjectNotFoundError:
            continue
    return ends


def _findings(namespace: str, topic_partition: TopicPartition, ends: _Ends) -> Iterator[Finding]:
    for base, after in pairwise(sorted(ends)):
        end = ends[base]
        key = object_keys.segment_key(namespace, *topic_partition, base)
        if end is not None and end < after:
            yield _gap(topic_partition, end, after, key)
        elif end is not None and end > after:
            reason = f"offsets {after} to {end - 1} are also in the next segment"
            yield Finding(FindingKind.OVERLAP, key, reason, topic_partition[0])


def _gap(topic_partition: TopicPartition, start: int, end: int, key: str) -> Finding:
    topic, partition = topic_partition
    reason = f"{topic}/{partition} lacks the offsets {start} to {end - 1}"
    return Finding(FindingKind.GAP, key, reason, topic)
