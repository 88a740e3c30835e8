"""Everything in a namespace, sorted by what it is: what to check, and what belongs to nobody.

The law: a listing takes a while, and a broker goes on meanwhile. What looks like nobody's is looked
at once more before it is told. Left-overs of jobs are told after a day, because jobs take their
time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from kafscale.errors import ObjectNotFoundError
from kafscale.spark.jobs.compact.dirty_ratio import checkpoint_prefix
from kafscale.spark.jobs.scrub.findings import Finding, Kind
from kafscale.spark.plan.offset_map import CatalogTopic, TopicPartition
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import ObjectInfo

LEFT_MS: Final = 24 * 3600 * 1000
"""After this time, what a job has put aside, or a broker has tried out, is taken for left over."""

_PASSING: Final = (object_keys.STAGING_DIRECTORY, object_keys.PROBE_DIRECTORY)


class ListedSegment(msgspec.Struct, frozen=True):
    """A segment to check, with its index."""

    place: TopicPartition
    base_offset: int
    key: str
    size_bytes: int
    modified_ms: int

    @property
    def index_key(self) -> str:
        return self.key.removesuffix(object_keys.SEGMENT_SUFFIX) + object_keys.INDEX_SUFFIX


class Listing(msgspec.Struct):
    """What a namespace holds."""

    segments: list[ListedSegment] = []
    """Ascending within each partition."""
    wal: list[ObjectInfo] = []
    findings: list[Finding] = []
    count: int = 0


def look(
    store: BlockingObjectStore,
    namespace: str,
    known: Mapping[str, CatalogTopic],
    now_ms: int,
    wanted: Callable[[str], bool],
) -> Listing:
    """List everything; what is of topics that are not wanted is passed over."""
    listing = Listing()
    indexes: dict[str, ObjectInfo] = {}
    strangers: list[tuple[str, Kind, str]] = []
    for item in store.list(f"{namespace}/"):
        listing.count += 1
        ref = object_keys.parse_segment(namespace, item.key)
        if ref is not None:
            if not wanted(ref.topic):
                continue
            if ref.is_index:
                indexes[item.key] = item
            else:
                place = (ref.topic, ref.partition)
                listing.segments.append(
                    ListedSegment(
                        place, ref.base_offset, item.key, item.size_bytes, item.modified_ms
                    )
                )
            if known and not _is_known(known, ref.topic, ref.partition):
                strangers.append((item.key, Kind.ORPHAN_TOPIC, ref.topic))
        elif object_keys.parse_wal(namespace, item.key):
            listing.wal.append(item)
        else:
            strangers += _stranger(namespace, item, now_ms)
    for segment in listing.segments:
        indexes.pop(segment.index_key, None)
    strangers += [(key, Kind.ORPHAN_INDEX, _topic_of(namespace, key)) for key in indexes]
    listing.findings += _still_there(store, strangers)
    listing.segments.sort(key=lambda each: (each.place, each.base_offset))
    return listing


def _is_known(known: Mapping[str, CatalogTopic], topic: str, partition: int) -> bool:
    return topic in known and partition < known[topic].partitions


def _stranger(namespace: str, item: ObjectInfo, now_ms: int) -> Iterator[tuple[str, Kind, str]]:
    """What to make of an object that is neither a segment nor of the WAL."""
    directory = item.key.removeprefix(f"{namespace}/").partition("/")[0]
    if directory in _PASSING:
        if now_ms - item.modified_ms > LEFT_MS:
            yield item.key, Kind.STAGED, ""
    elif not (
        object_keys.parse_log_start(namespace, item.key)
        or item.key == object_keys.catalog_key(namespace)
        or item.key.startswith(checkpoint_prefix(namespace))
        or object_keys.parse_job_run(namespace, item.key)
    ):
        yield item.key, Kind.UNKNOWN, ""


def _topic_of(namespace: str, key: str) -> str:
    ref = object_keys.parse_segment(namespace, key)
    assert ref is not None
    return ref.topic


def _still_there(
    store: BlockingObjectStore, strangers: Iterable[tuple[str, Kind, str]]
) -> Iterator[Finding]:
    for key, kind, topic in strangers:
        with suppress(ObjectNotFoundError):
            store.head(key)
            if kind is Kind.ORPHAN_INDEX and _has_segment(store, key):
                continue
            yield Finding(kind, key, topic=topic)


def _has_segment(store: BlockingObjectStore, index_key: str) -> bool:
    key = index_key.removesuffix(object_keys.INDEX_SUFFIX) + object_keys.SEGMENT_SUFFIX
    try:
        store.head(key)
    except ObjectNotFoundError:
        return False
    return True
