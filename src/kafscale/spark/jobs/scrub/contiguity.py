"""Whether the segments of partitions follow each other, and the WAL follows them.

The law: what was read at different times may not fit although nothing is missing, because segments
were swapped meanwhile. Where it does not, the partition is looked at once more, by names and
footers alone, until two looks see the same.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final

from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.spark.jobs.scrub.findings import Finding, Kind
from kafscale.spark.jobs.scrub.task import Checked
from kafscale.spark.plan.offset_map import OffsetMap, TopicPartition
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.objects.blocking import BlockingObjectStore

LOOKS_MAX: Final = 10

_Ends = Mapping[int, int | None]
"""Where segments end, by where they begin; None if they cannot be read."""


def holes(
    store: BlockingObjectStore, namespace: str, checked: Iterable[Checked]
) -> Iterator[Finding]:
    """Offsets that are missing between segments, or in two of them."""
    ordered = sorted(checked, key=attrgetter("place", "base_offset"))
    for place, several in groupby(ordered, key=attrgetter("place")):
        ends = {each.base_offset: each.next_offset for each in several}
        if not _fits(ends):
            yield from _findings(namespace, place, _settled(store, namespace, place))


def wal_holes(found: OffsetMap) -> list[Finding]:
    """Offsets that are missing between segments and the WAL, or within that."""
    return [
        _hole(place, before.end_offset, after.start_offset, after.key)
        for place, partition in found.partitions.items()
        for before, after in pairwise(partition.extents)
        if after.is_wal and before.end_offset < after.start_offset
    ]


def _fits(ends: _Ends) -> bool:
    return all(ends[base] in (None, after) for base, after in pairwise(sorted(ends)))


def _settled(store: BlockingObjectStore, namespace: str, place: TopicPartition) -> _Ends:
    """What a partition looks like when nobody changes it."""
    ends: _Ends = {}
    for _ in range(LOOKS_MAX):
        before, ends = ends, _ends(store, namespace, place)
        if ends == before:
            break
    return ends


def _ends(store: BlockingObjectStore, namespace: str, place: TopicPartition) -> _Ends:
    ends: dict[int, int | None] = {}
    for item in store.list(object_keys.partition_prefix(namespace, *place)):
        ref = object_keys.parse_segment(namespace, item.key)
        if ref is None or ref.is_index:
            continue
        with suppress(ObjectNotFoundError):
            suffix = store.get_suffix(item.key, segment.FOOTER_BYTES)
            try:
                ends[ref.base_offset] = segment.decode_footer(item.key, suffix).last_offset + 1
            except DamagedObjectError:
                ends[ref.base_offset] = None
    return ends


def _findings(namespace: str, place: TopicPartition, ends: _Ends) -> Iterator[Finding]:
    for base, after in pairwise(sorted(ends)):
        end = ends[base]
        key = object_keys.segment_key(namespace, *place, base)
        if end is not None and end < after:
            yield _hole(place, end, after, key)
        elif end is not None and end > after:
            reason = f"offsets {after} to {end - 1} are in the next one, too"
            yield Finding(Kind.OVERLAP, key, reason, place[0])


def _hole(place: TopicPartition, start: int, end: int, key: str) -> Finding:
    topic, partition = place
    return Finding(
        Kind.HOLE, key, f"{topic}/{partition} lacks the offsets {start} to {end - 1}", topic
    )
