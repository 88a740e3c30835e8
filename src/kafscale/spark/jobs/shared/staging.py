"""Staged segments: their object keys, checksums, and the removal of leftovers of earlier runs.

    {namespace}/_staging/{job}-{run}-{base offset}/{topic}/{partition}/segment-….kfs

Each segment has its own directory and is swapped on its own: it replaces one group of segments,
independently of neighbouring groups. Invariants: the keys of a run are unique to it; leftovers of
earlier runs of the same job for the same partitions are removed first, so a job that was killed at
any point can be run again. Two concurrent runs of a job do not damage the log, but the later one
deletes the staged segments of the other.
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

import msgspec

from kafscale.aio.gather import map_limited
from kafscale.errors import ObjectNotFoundError
from kafscale.spark.jobs.shared.segment_group import SegmentGroup
from kafscale.storage.bucket import read_segment_footer
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import PAGE_KEYS, ObjectStore
from kafscale.text.topic_partition import TopicPartition, topic_of_directory

READS_MAX: Final = 32


class StagedSegment(msgspec.Struct, frozen=True):
    """A segment that is ready to be swapped in, and the group that it replaces."""

    group: SegmentGroup
    name: str
    """Of its staging directory."""
    key: str
    size_bytes: int
    checksum: int
    record_count: int
    records_before: int
    checksums: tuple[int, ...]
    """Of the replaced segments, which must not have changed since they were read."""
    has_survivors: bool = True
    """Whether it holds records that are needed, not only one because a segment needs one."""

    @property
    def topic_partition(self) -> TopicPartition:
        return self.group.topic_partition


class SkippedGroup(msgspec.Struct, frozen=True):
    """A group for which no segment was staged."""

    topic_partition: TopicPartition
    reason: str
    is_outdated: bool
    """Whether the log has changed in the meantime, so that the next run handles it."""


def staging_name(job: str, run_id: str, base_offset: int) -> str:
    """Return the name of the staging directory of one group."""
    return f"{job}-{run_id}-{base_offset:020d}"


def staged_key(namespace: str, name: str, group: SegmentGroup) -> str:
    """Return the key of the staged segment of a group."""
    directory = object_keys.staging_directory(namespace, name)
    return object_keys.segment_key(directory, group.directory, group.partition, group.base_offset)


def stage(
    store: BlockingObjectStore,
    namespace: str,
    name: str,
    group: SegmentGroup,
    built: segment.Built,
    *,
    records_before: int,
    checksums: tuple[int, ...] | None,
    has_survivors: bool = True,
) -> StagedSegment:
    """Store a segment that replaces a group whose segments had these checksums."""
    key = staged_key(namespace, name, group)
    store.put(key, built.parts, create=False)
    return StagedSegment(
        group,
        name,
        key,
        built.size_bytes,
        segment.decode_footer(key, built.parts[-1]).checksum,
        built.count,
        records_before,
        checksums or (),
        has_survivors,
    )


def delete_leftovers(
    store: BlockingObjectStore,
    namespace: str,
    job: str,
    topic_partitions: Collection[TopicPartition],
) -> list[str]:
    """Delete what earlier runs of a job have staged for some partitions; return the keys."""
    leftovers = [
        item.key
        for item in store.list(f"{namespace}/{object_keys.STAGING_DIRECTORY}/")
        if _is_leftover(namespace, item.key, job, topic_partitions)
    ]
    delete_objects(store, leftovers)
    return leftovers


def delete_objects(store: BlockingObjectStore, keys: Sequence[str]) -> None:
    for start in range(0, len(keys), PAGE_KEYS):
        store.delete(keys[start : start + PAGE_KEYS])


async def read_checksum(store: ObjectStore, key: str) -> int:
    """Return the checksum in the footer of a segment."""
    return (await read_segment_footer(store, key)).checksum


async def read_checksums(store: ObjectStore, group: SegmentGroup) -> tuple[int, ...] | None:
    """Return the checksums of a group's segments; None if one of them no longer exists."""
    keys = [source.key for source in group.sources]
    try:
        return tuple(await map_limited(partial(read_checksum, store), keys, READS_MAX))
    except ObjectNotFoundError:
        return None


def _is_leftover(
    namespace: str, key: str, job: str, topic_partitions: Collection[TopicPartition]
) -> bool:
    name, _, rest = key.removeprefix(f"{namespace}/{object_keys.STAGING_DIRECTORY}/").partition("/")
    directory, _, rest = rest.partition("/")
    partition = rest.partition("/")[0]
    is_own = name.startswith(f"{job}-") and partition.isdecimal()
    return is_own and (topic_of_directory(directory), int(partition)) in topic_partitions
