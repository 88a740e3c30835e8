"""Reads a bucket: lists its objects by kind, and reads the few bytes that describe their content.

All that scan a bucket build on this module: recovery, brokers that open logs, Spark and its jobs,
and the console. They differ in what they keep of a listing.

Invariants: every object is returned, those with unknown keys too. A footer is read without the
batches before it. Objects may be deleted at any time: the records of a WAL object that no longer
exists are in segments, so a scan that lists WAL streams before segments finds all records.
"""

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
    """Yield the objects under a prefix in key order, with the parts of their keys."""
    async for chunk in store.list(prefix):
        for item in chunk:
            yield object_keys.parse(namespace, item.key), item


async def list_segments(
    store: ObjectStore, namespace: str, prefix: str
) -> AsyncIterator[tuple[object_keys.SegmentRef, ObjectInfo]]:
    """Yield the segments under a prefix, without their indexes."""
    async for ref, item in list_objects(store, namespace, prefix):
        if isinstance(ref, object_keys.SegmentRef) and not ref.is_index:
            yield ref, item


async def read_segment_footer(store: ObjectStore, key: str) -> segment.Footer:
    return segment.decode_footer(key, await store.get_suffix(key, segment.FOOTER_BYTES))


async def read_index(store: ObjectStore, segment_key: str) -> Index | None:
    """Read the index of a segment; None if it is missing or damaged."""
    key = object_keys.index_key_of(segment_key)
    try:
        return index.decode(key, await store.get(key))
    except (ObjectNotFoundError, DamagedObjectError):
        return None


async def read_log_start(store: ObjectStore, namespace: str, topic: str, partition: int) -> int:
    """Read the log start offset that the owner of a partition published for other readers."""
    key = object_keys.log_start_key(namespace, topic, partition)
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
            found[item.key] = await _read_ranges(store, item)
        except ObjectNotFoundError:
            logger.debug("wal object already deleted", key=item.key)
        except DamagedObjectError as error:
            logger.warning("damaged WAL object", key=item.key, reason=error.reason)

    await map_limited(read, items, READS_MAX)
    return found


async def _read_ranges(store: ObjectStore, item: ObjectInfo) -> list[wal_object.Range]:
    if item.size_bytes == wal_object.EMPTY_BYTES:
        return []
    length = min(wal_object.TAIL_BYTES_HINT, item.size_bytes)
    while True:
        suffix = await store.get_suffix(item.key, length)
        ranges = wal_object.decode_footer(item.key, suffix, item.size_bytes)
        if not isinstance(ranges, int):
            return ranges
        length = ranges
