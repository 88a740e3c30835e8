"""What jobs put aside until its owner takes it over: names, proofs, and what was left behind.

    {namespace}/_staging/{job}-{run}-{base offset}/{topic}/{partition}/segment-….kfs

Each segment has a directory, and so a swap, of its own: it takes the place of one group, whatever
happens to the groups beside it. The laws: what a run stages has names that no other run uses; what
an earlier run of the same job has left for the same partitions is removed before anything else, and
so a job that is cut short anywhere can simply be run again. Two runs of one job at the same time do
not harm the log, but the later one takes the staged segments of the other away.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from kafscale.errors import ObjectNotFoundError
from kafscale.spark.jobs.merge.grouping import Group
from kafscale.spark.plan.offset_map import TopicPartition
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import PAGE_KEYS, ObjectStore

READS_MAX: Final = 32


class Staged(msgspec.Struct, frozen=True):
    """A segment that waits to be swapped in, and what it was made of."""

    group: Group
    job: str
    key: str
    size_bytes: int
    checksum: int
    record_count: int
    records_before: int
    checksums: tuple[int, ...]
    """Of the segments that it was made of, which must not have changed since."""

    @property
    def place(self) -> TopicPartition:
        return self.group.place


class Skipped(msgspec.Struct, frozen=True):
    """A group of which nothing was made."""

    place: TopicPartition
    reason: str
    is_outdated: bool
    """Whether it has only changed meanwhile, which the next run takes into account."""


def job_name(kind: str, run: str, base_offset: int) -> str:
    return f"{kind}-{run}-{base_offset:020d}"


def staged_key(namespace: str, job: str, group: Group) -> str:
    """Where a job stages the segment that it makes of a group."""
    area = f"{namespace}/{object_keys.STAGING_DIRECTORY}/{job}"
    return object_keys.segment_key(area, group.topic, group.partition, group.base_offset)


def clear(
    store: BlockingObjectStore, namespace: str, kind: str, places: Collection[TopicPartition]
) -> list[str]:
    """Remove what earlier runs of a job have left for some partitions; the names of it."""
    left = [
        item.key
        for item in store.list(f"{namespace}/{object_keys.STAGING_DIRECTORY}/")
        if _is_left(namespace, item.key, kind, places)
    ]
    remove(store, left)
    return left


def remove(store: BlockingObjectStore, keys: Sequence[str]) -> None:
    for start in range(0, len(keys), PAGE_KEYS):
        store.delete(keys[start : start + PAGE_KEYS])


async def checksum(store: ObjectStore, key: str) -> int:
    """What the footer of a segment says."""
    suffix = await store.get_suffix(key, segment.FOOTER_BYTES)
    return segment.decode_footer(key, suffix).checksum


async def checksums(store: ObjectStore, group: Group) -> tuple[int, ...] | None:
    """What the footers of a group's segments say; None if one of them is gone."""
    at_once = asyncio.Semaphore(READS_MAX)

    async def read(key: str) -> int:
        async with at_once:
            return await checksum(store, key)

    try:
        return tuple(await asyncio.gather(*(read(source.key) for source in group.sources)))
    except ObjectNotFoundError:
        return None


def _is_left(namespace: str, key: str, kind: str, places: Collection[TopicPartition]) -> bool:
    job, _, rest = key.removeprefix(f"{namespace}/{object_keys.STAGING_DIRECTORY}/").partition("/")
    topic, _, numbered = rest.partition("/")
    number = numbered.partition("/")[0]
    is_ours = job.startswith(f"{kind}-") and number.isdecimal()
    return is_ours and (topic, int(number)) in places
