"""Lists a namespace: the objects to verify, and the objects that belong to no topic and no job.

A finding is about the current state: an object that was deleted or replaced since it was listed is
none. Brokers keep working while the listing runs, so an orphan is checked once more before it is
reported. Staged objects are reported after a day, because jobs may run for long.
"""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from typing import Final

import msgspec

from kafscale.errors import ObjectNotFoundError
from kafscale.storage.bucket import ListingParser
from kafscale.storage.compaction.checkpoint import checkpoint_prefix
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import ObjectInfo
from kafscale.storage.topic_catalog import CatalogTopic
from kafscale.text.topic_partition import TopicPartition

LEFTOVER_MS: Final = 24 * 3600 * 1000
"""The age from which staged objects of jobs and probes of brokers count as leftovers."""

_TEMPORARY: Final = (object_keys.STAGING_DIRECTORY, object_keys.PROBE_DIRECTORY)


class FindingKind(enum.StrEnum):
    """What is wrong with an object."""

    SEGMENT = "damaged segment"
    INDEX = "damaged index"
    MISSING_INDEX = "missing index"
    WAL = "damaged WAL object"
    CATALOG = "damaged catalog"
    GAP = "missing offsets"
    OVERLAP = "offsets in two segments"
    ORPHAN_INDEX = "index without a segment"
    ORPHAN_TOPIC = "unknown topic"
    STAGED = "staged object of an earlier job"
    UNKNOWN = "unknown object"


_DAMAGE = frozenset(
    {
        FindingKind.SEGMENT,
        FindingKind.INDEX,
        FindingKind.MISSING_INDEX,
        FindingKind.WAL,
        FindingKind.CATALOG,
        FindingKind.GAP,
    }
)


class Finding(msgspec.Struct, frozen=True):
    """A damaged, missing or superfluous object."""

    kind: FindingKind
    key: str
    reason: str = ""
    topic: str = ""
    is_repaired: bool = False

    @property
    def is_damage(self) -> bool:
        """Whether records or their index are damaged; other findings only waste space."""
        return self.kind in _DAMAGE and not self.is_repaired

    def __str__(self) -> str:
        return f"{self.kind}: {self.key}" + (f": {self.reason}" if self.reason else "")


class ListedSegment(msgspec.Struct, frozen=True):
    """A segment to verify, with its index."""

    topic_partition: TopicPartition
    """The topic is given by its directory: objects of a deleted topic are verified separately."""
    base_offset: int
    key: str
    size_bytes: int
    modified_ms: int
    is_first: bool = False
    """Whether it is the first segment of its partition."""

    @property
    def index_key(self) -> str:
        return object_keys.index_key_of(self.key)


class Listing(msgspec.Struct):
    """The objects of a namespace."""

    segments: list[ListedSegment] = []
    """Ascending within each partition."""
    wal: list[ObjectInfo] = []
    findings: list[Finding] = []
    count: int = 0


def list_namespace(
    store: BlockingObjectStore,
    namespace: str,
    known: Mapping[str, CatalogTopic],
    now_ms: int,
    is_selected: Callable[[str], bool],
) -> Listing:
    """List all objects, except segments of topics that are not selected."""
    listing = Listing()
    indexes: dict[str, str] = {}
    """The topics of indexes by key."""
    orphans: list[tuple[str, FindingKind, str]] = []
    parser = ListingParser(namespace)
    for item in store.list(f"{namespace}/"):
        listing.count += 1
        ref = parser.parse(item.key)
        if isinstance(ref, object_keys.SegmentRef):
            if not is_selected(ref.topic):
                continue
            if ref.is_index:
                indexes[item.key] = ref.topic
            else:
                listing.segments.append(
                    ListedSegment(
                        (ref.directory, ref.partition),
                        ref.base_offset,
                        item.key,
                        item.size_bytes,
                        item.modified_ms,
                    )
                )
            if known and not _is_known(known, ref):
                orphans.append((item.key, FindingKind.ORPHAN_TOPIC, ref.topic))
        elif isinstance(ref, object_keys.WalRef):
            listing.wal.append(item)
        elif ref is None:
            orphans += _orphan(namespace, item, now_ms)
    for segment in listing.segments:
        indexes.pop(segment.index_key, None)
    orphans += [(key, FindingKind.ORPHAN_INDEX, topic) for key, topic in indexes.items()]
    listing.findings += _check_again(store, orphans)
    listing.segments.sort(key=lambda each: (each.topic_partition, each.base_offset))
    for _, segments in groupby(enumerate(listing.segments), lambda each: each[1].topic_partition):
        number, first = next(segments)
        listing.segments[number] = msgspec.structs.replace(first, is_first=True)
    return listing


def _is_known(known: Mapping[str, CatalogTopic], ref: object_keys.SegmentRef) -> bool:
    topic = known.get(ref.topic)
    return (
        topic is not None
        and topic.directory == ref.directory
        and ref.partition < topic.partition_count
    )


def _orphan(
    namespace: str, item: ObjectInfo, now_ms: int
) -> Iterator[tuple[str, FindingKind, str]]:
    """Return the orphan, if an object with an unparsed key is one."""
    directory = item.key.removeprefix(f"{namespace}/").partition("/")[0]
    if directory in _TEMPORARY:
        if now_ms - item.modified_ms > LEFTOVER_MS:
            yield item.key, FindingKind.STAGED, ""
    elif item.key != object_keys.catalog_key(namespace) and not item.key.startswith(
        checkpoint_prefix(namespace)
    ):
        yield item.key, FindingKind.UNKNOWN, ""


def _check_again(
    store: BlockingObjectStore, orphans: Iterable[tuple[str, FindingKind, str]]
) -> Iterator[Finding]:
    """Return findings for the orphans that still exist."""
    for key, kind, topic in orphans:
        with suppress(ObjectNotFoundError):
            store.head(key)
            if kind is FindingKind.ORPHAN_INDEX and _has_segment(store, key):
                continue
            yield Finding(kind, key, topic=topic)


def _has_segment(store: BlockingObjectStore, index_key: str) -> bool:
    key = index_key.removesuffix(object_keys.INDEX_SUFFIX) + object_keys.SEGMENT_SUFFIX
    try:
        store.head(key)
    except ObjectNotFoundError:
        return False
    return True
