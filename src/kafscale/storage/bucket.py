"""Reads a bucket: lists its objects by kind, and reads the few bytes that describe their content.

All that scan a bucket build on this module: recovery, brokers that open logs, Spark and its jobs,
and the console. They differ in what they keep of a listing.

Invariants: every object is returned, those with unknown keys too. A segment that a merged one has
replaced is returned as a `ReplacedRef`, never as a segment: a write that took effect late may have
created it again. A footer is read without the
batches before it. Objects may be deleted at any time: the records of a WAL object that no longer
exists are in segments, so a scan that lists WAL streams before segments finds all records.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Final

from kafscale.aio.gather import map_limited
from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import index, object_keys, segment, wal_object
from kafscale.storage.formats.index import Index
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

logger = get_logger(__name__)

READS_MAX: Final = 32
"""Limit of concurrent reads of small objects and footers."""


async def list_objects(
    store: ObjectStore, namespace: str, prefix: str
) -> AsyncIterator[tuple[object_keys.Ref | None, ObjectInfo]]:
    """Yield the objects under a prefix in key order, with the parts of their keys.

    The prefix is that of a partition, or a shorter one.
    """
    parser = ListingParser(namespace)
    async for chunk in store.list(prefix):
        for item in chunk:
            yield parser.parse(item.key), item


class ListingParser:
    """Parses the keys of a listing, which come in order.

    In each partition, first come all objects that say how far merged segments reach, then the
    segments by offset.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._partition = ("", -1)
        self._merged: deque[object_keys.MergedRef] = deque()
        """Those of the current partition that do not begin before the last segment."""
        self._merged_to = 0
        """The highest end of those that begin before the last segment."""

    def parse(self, key: str) -> object_keys.Ref | None:
        """The parts of a key; a segment that a merged one has replaced is a `ReplacedRef`."""
        ref = object_keys.parse(self._namespace, key)
        if not isinstance(ref, object_keys.MergedRef | object_keys.SegmentRef):
            return ref
        if (ref.directory, ref.partition) != self._partition:
            self._partition = (ref.directory, ref.partition)
            self._merged.clear()
            self._merged_to = 0
        if isinstance(ref, object_keys.MergedRef):
            self._merged.append(ref)
            return ref
        while self._merged and self._merged[0].base_offset < ref.base_offset:
            self._merged_to = max(self._merged_to, self._merged.popleft().end_offset)
        return object_keys.ReplacedRef(ref) if ref.base_offset < self._merged_to else ref


async def list_segments(
    store: ObjectStore, namespace: str, prefix: str
) -> AsyncIterator[tuple[object_keys.SegmentRef, ObjectInfo]]:
    """Yield the segments under a prefix, without their indexes."""
    async for ref, item in list_objects(store, namespace, prefix):
        if isinstance(ref, object_keys.SegmentRef) and not ref.is_index:
            yield ref, item


async def read_segment_footer(store: ObjectStore, key: str) -> segment.Footer:
    return segment.decode_footer(key, await store.get_suffix(key, segment.FOOTER_BYTES))


async def read_index(store: ObjectStore, segment_key: str, segment_bytes: int) -> Index | None:
    """Read the index of a segment of this size; None if it is missing or damaged."""
    key = object_keys.index_key_of(segment_key)
    try:
        return index.decode(key, await store.get(key), segment_bytes)
    except (ObjectNotFoundError, DamagedObjectError):
        return None


async def read_log_start(store: ObjectStore, key: str) -> int:
    """Read the log start offset that the owner of a partition published for other readers."""
    data = bytes(await store.get(key))
    if not data.isdigit():
        raise DamagedObjectError(key, f"invalid log start offset {data[:20]!r}")
    return int(data)


async def read_wal_ranges(
    store: ObjectStore, items: Iterable[ObjectInfo]
) -> dict[str, list[wal_object.Range]]:
    """Read which offsets of which partitions WAL objects hold, by key.

    Deleted objects are left out, and damaged ones, which are logged.
    """
    found: dict[str, list[wal_object.Range]] = {}

    async def read(item: ObjectInfo) -> None:
        try:
            found[item.key] = await read_wal_footer(store, item)
        except ObjectNotFoundError:
            logger.debug("wal object already deleted", key=item.key)
        except DamagedObjectError as error:
            logger.warning("damaged WAL object", key=item.key, reason=error.reason)

    await map_limited(read, items, READS_MAX)
    return found


async def read_wal_footer(store: ObjectStore, item: ObjectInfo) -> list[wal_object.Range]:
    """Read which offsets of which partitions a WAL object holds."""
    if item.size_bytes == wal_object.EMPTY_BYTES:
        return []
    length = min(wal_object.TAIL_BYTES_HINT, item.size_bytes)
    while True:
        suffix = await store.get_suffix(item.key, length)
        ranges = wal_object.decode_footer(item.key, suffix, item.size_bytes)
        if not isinstance(ranges, int):
            return ranges
        length = ranges
