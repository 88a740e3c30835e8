"""Stages segments on Spark and lets the owners of partitions swap them in, for merge and compact.

A run may be killed in any of these steps without harm:

    clear    delete what an earlier run has staged for the same partitions
    stage    tasks build segments, one each, and stage them
    swap     owners swap them in, in log order within each partition

Invariants of the swap: the segments of a partition are swapped one after the other, each
independently of the others. The checksums of the replaced segments are compared before each swap by
the job, and in the swap by the owner, because swapping in a merge of segments that were compacted
in the meantime would bring back deleted records. A swap whose response was lost is judged by its
result: whether the segment is in place.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from kafscale.aio.gather import map_limited
from kafscale.config.sections.security import ClientTls
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import Partition
from kafscale.errors import (
    DamagedObjectError,
    KafscaleError,
    ObjectNotFoundError,
    OffsetOutOfRangeError,
    OperatingError,
)
from kafscale.observability.logging import get_logger
from kafscale.spark.jobs.shared import staging
from kafscale.spark.jobs.shared.owners import PartitionOwners
from kafscale.spark.jobs.shared.staging import (
    SkippedGroup,
    StagedSegment,
    read_checksum,
    read_checksums,
)
from kafscale.spark.read.location import Location
from kafscale.spark.runtime.parallel_map import parallel_map, progress_bar
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.storage.objects.store import ObjectStore
from kafscale.text.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = get_logger(__name__)

CONCURRENT_PARTITIONS: Final = 8
POLL_SECONDS: Final = 2.0
POLLS_MAX: Final = 150
"""How often to poll for the result of a swap whose request has timed out."""

_TIMED_OUT: Final = "DEADLINE_EXCEEDED"
_REJECTED: Final = frozenset({"INVALID_ARGUMENT", "NOT_FOUND"})

Item = TypeVar("Item")


class SwapOutcome(msgspec.Struct, frozen=True):
    """The result of swapping in a staged segment."""

    staged: StagedSegment
    problem: str = ""
    """Why it was not swapped in; empty if it was."""
    is_outdated: bool = False
    """Whether the log has changed in the meantime, so that the next run handles it."""

    @property
    def is_swapped(self) -> bool:
        return not self.problem


def ignore_step(_step: str) -> None:
    """Ignore the name of the next step; the default where no test observes steps."""


@dataclass(frozen=True, kw_only=True)
class ControlAccess:
    """Where the segments are, and how brokers are reached that can swap them."""

    location: Location
    control: tuple[str, ...]
    """Control plane addresses of brokers."""
    control_tls: ClientTls | None = None
    """Client files for an encrypted control plane."""


@dataclass(frozen=True, kw_only=True)
class SegmentInstaller(ControlAccess):
    """One run of a job that replaces segments."""

    job: str
    run_id: str
    """Unique to this run."""
    progress: bool = True
    on_step: Callable[[str], None] = ignore_step
    """Called with the name of each step before it starts."""

    def check_brokers(self, store: BlockingObjectStore) -> None:
        """Raise unless a broker answers that could swap segments."""

        async def connect(_store: ObjectStore) -> None:
            async with PartitionOwners(self.control, self.control_tls):
                pass

        store.run(connect)

    def clear_staging(
        self, store: BlockingObjectStore, topic_partitions: Sequence[TopicPartition]
    ) -> None:
        self.on_step("clear")
        keys = staging.delete_leftovers(
            store, self.location.namespace, self.job, frozenset(topic_partitions)
        )
        if keys:
            logger.info("staged objects of an earlier run deleted", count=len(keys), first=keys[0])

    def stage(
        self,
        spark: "SparkSession",
        items: Sequence[Item],
        build: Callable[[Item], StagedSegment | None],
        topic_partition_of: Callable[[Item], TopicPartition],
    ) -> tuple[list[StagedSegment], list[SkippedGroup]]:
        """Build and stage segments in tasks; return them, and the groups that were skipped.

        Groups that would not change are in neither list.
        """
        self.on_step("stage")
        results = parallel_map(
            spark,
            items,
            partial(build_or_skip, build, topic_partition_of),
            description="building segments",
            progress=self.progress,
        )
        return (
            [each for each in results if isinstance(each, StagedSegment)],
            [each for each in results if isinstance(each, SkippedGroup)],
        )

    def swap(
        self, store: BlockingObjectStore, staged: Sequence[StagedSegment]
    ) -> list[SwapOutcome]:
        """Let owners swap in all staged segments, with a progress bar."""
        self.on_step("swap")
        if not staged:
            return []
        with progress_bar("swapping segments", len(staged), self.progress) as advance:

            async def swap(objects: ObjectStore) -> list[SwapOutcome]:
                async with PartitionOwners(self.control, self.control_tls) as owners:
                    return await swap_all(
                        objects,
                        owners,
                        staged,
                        on_done=lambda _outcome: advance(),
                        on_step=self.on_step,
                    )

            return store.run(swap)


@dataclass(frozen=True, kw_only=True)
class RewriteSettings(ControlAccess):
    """Which segments a job rewrites."""

    topics: tuple[str, ...] = ()
    """Topic names; empty for all topics."""
    target_bytes: int = 0
    """Target size of a segment; 0 for the `segment.bytes` of the topic."""

    def installer(
        self, job: str, random: Random, *, progress: bool, on_step: Callable[[str], None]
    ) -> SegmentInstaller:
        return SegmentInstaller(
            location=self.location,
            control=self.control,
            control_tls=self.control_tls,
            job=job,
            run_id=f"{random.getrandbits(32):08x}",
            progress=progress,
            on_step=on_step,
        )


def build_or_skip(
    build: Callable[[Item], StagedSegment | None],
    topic_partition_of: Callable[[Item], TopicPartition],
    item: Item,
) -> StagedSegment | SkippedGroup | None:
    """Build a segment; a group that cannot be read is skipped and does not fail the others."""
    try:
        return build(item)
    except OffsetOutOfRangeError as error:
        return SkippedGroup(topic_partition_of(item), str(error), is_outdated=True)
    except DamagedObjectError as error:
        return SkippedGroup(topic_partition_of(item), str(error), is_outdated=False)


def count_outdated(outcomes: Sequence[SwapOutcome], skipped: Sequence[SkippedGroup]) -> int:
    """Count the groups that have changed in the meantime."""
    return sum(each.is_outdated for each in outcomes) + sum(each.is_outdated for each in skipped)


def problems(outcomes: Sequence[SwapOutcome], skipped: Sequence[SkippedGroup]) -> tuple[str, ...]:
    """Return the problems that the next run will not solve, one line each."""
    return tuple(
        f"{Partition(*each.topic_partition)}: {each.reason}"
        for each in skipped
        if not each.is_outdated
    ) + tuple(each.problem for each in outcomes if each.problem and not each.is_outdated)


# --- swapping -------------------------------------------------------------------------------------


async def swap_all(
    store: ObjectStore,
    owners: PartitionOwners,
    staged: Sequence[StagedSegment],
    *,
    on_done: Callable[[SwapOutcome], None] = lambda _outcome: None,
    on_step: Callable[[str], None] = ignore_step,
) -> list[SwapOutcome]:
    """Let owners swap in all staged segments; return the outcomes in log order."""

    async def swap_partition(segments: Sequence[StagedSegment]) -> list[SwapOutcome]:
        outcomes: list[SwapOutcome] = []
        for each in segments:
            on_step(f"swap {each.group.topic}/{each.group.partition}")
            outcomes.append(await _swap(store, owners, each))
            on_done(outcomes[-1])
        return outcomes

    ordered = sorted(staged, key=lambda each: (each.topic_partition, each.group.base_offset))
    by_partition = groupby(ordered, key=attrgetter("topic_partition"))
    partitions = [list(segments) for _, segments in by_partition]
    results = await map_limited(swap_partition, partitions, CONCURRENT_PARTITIONS)
    return [outcome for outcomes in results for outcome in outcomes]


async def _swap(store: ObjectStore, owners: PartitionOwners, staged: StagedSegment) -> SwapOutcome:
    partition = Partition(*staged.topic_partition)
    if await read_checksums(store, staged.group) != staged.checksums:
        return await _drop_outdated(store, staged, "its segments have changed in the meantime")
    try:
        await owners.swap(partition, staged.name, staged.checksums)
    except KafscaleError as error:
        status = error.status if isinstance(error, ControlError) else ""
        if status == _TIMED_OUT:
            await _wait_until_deleted(store, staged.key)
        if await _is_in_place(store, staged):
            return SwapOutcome(staged)
        if isinstance(error, ControlError) and status in _REJECTED:
            return await _drop_outdated(store, staged, error.details)
        return SwapOutcome(staged, f"{partition}: {error}")
    return SwapOutcome(staged)


async def _drop_outdated(store: ObjectStore, staged: StagedSegment, reason: str) -> SwapOutcome:
    await store.delete([staged.key])
    logger.info("staged segment dropped", key=staged.key, reason=reason)
    return SwapOutcome(staged, f"{Partition(*staged.topic_partition)}: {reason}", is_outdated=True)


async def _is_in_place(store: ObjectStore, staged: StagedSegment) -> bool:
    try:
        return await read_checksum(store, staged.group.sources[0].key) == staged.checksum
    except OperatingError:
        return False


async def _wait_until_deleted(store: ObjectStore, key: str) -> None:
    """Wait until the owner has deleted the staged object, which it does at the end of a swap."""
    for _ in range(POLLS_MAX):
        try:
            await store.head(key)
        except ObjectNotFoundError:
            return
        await asyncio.sleep(POLL_SECONDS)
