"""Staged segments swapped in, partition by partition.

The laws. The segments of a partition are swapped one after the other, each for itself: what becomes
of one is no matter to the others. Before each, the segments that it was made of are looked at once
more, because a merge of what somebody has compacted meanwhile would bring back what is gone. A swap
that was not answered is judged by its outcome: whether the segment is in its place.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

import msgspec

from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.partition import Partition
from kafscale.errors import KafscaleError, ObjectNotFoundError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.spark.jobs.shared.owners import Owners
from kafscale.spark.jobs.shared.staging import Skipped, Staged, checksum, checksums
from kafscale.storage.objects.store import ObjectStore

log = get_logger(__name__)

PARTITIONS_AT_ONCE: Final = 8
WAIT_SECONDS: Final = 2.0
WAITS_MAX: Final = 150
"""How often the outcome of a swap is looked for that nobody answered for."""

_LATE: Final = "DEADLINE_EXCEEDED"
_REFUSED: Final = frozenset({"INVALID_ARGUMENT", "NOT_FOUND"})


class Outcome(msgspec.Struct, frozen=True):
    """What became of a staged segment."""

    staged: Staged
    problem: str = ""
    """Why it was not swapped in; empty if it was."""
    is_outdated: bool = False
    """Whether the log had changed meanwhile, which the next run takes into account."""

    @property
    def is_swapped(self) -> bool:
        return not self.problem


def outdated(outcomes: Sequence[Outcome], skipped: Sequence[Skipped]) -> int:
    """How many groups have changed meanwhile, which the next run takes into account."""
    return sum(each.is_outdated for each in outcomes) + sum(each.is_outdated for each in skipped)


def problems(outcomes: Sequence[Outcome], skipped: Sequence[Skipped]) -> tuple[str, ...]:
    """What somebody has to see to, in sentences."""
    return tuple(
        f"{Partition(*each.place)}: {each.reason}" for each in skipped if not each.is_outdated
    ) + tuple(each.problem for each in outcomes if each.problem and not each.is_outdated)


async def swap_in(
    store: ObjectStore,
    owners: Owners,
    staged: Sequence[Staged],
    *,
    on_done: Callable[[Outcome], None] = lambda _outcome: None,
    reached: Callable[[str], None] = lambda _step: None,
) -> list[Outcome]:
    """Have owners swap in everything; what became of it, in the order of the log."""
    at_once = asyncio.Semaphore(PARTITIONS_AT_ONCE)

    async def one_partition(several: Sequence[Staged]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        async with at_once:
            for each in several:
                reached(f"swap {each.group.topic}/{each.group.partition}")
                outcomes.append(await _swap(store, owners, each))
                on_done(outcomes[-1])
        return outcomes

    ordered = sorted(staged, key=lambda each: (each.place, each.group.base_offset))
    partitions = [list(several) for _, several in groupby(ordered, key=attrgetter("place"))]
    found = await asyncio.gather(*map(one_partition, partitions))
    return [outcome for outcomes in found for outcome in outcomes]


async def _swap(store: ObjectStore, owners: Owners, staged: Staged) -> Outcome:
    partition = Partition(*staged.place)
    if await checksums(store, staged.group) != staged.checksums:
        return await _outdated(store, staged, "its segments have changed meanwhile")
    try:
        await owners.swap(partition, staged.job)
    except KafscaleError as error:
        status = error.status if isinstance(error, ControlError) else ""
        if status == _LATE:
            await _wait(store, staged.key)
        if await _is_in_place(store, staged):
            return Outcome(staged)
        if isinstance(error, ControlError) and status in _REFUSED:
            return await _outdated(store, staged, error.details)
        return Outcome(staged, f"{partition}: {error}")
    return Outcome(staged)


async def _outdated(store: ObjectStore, staged: Staged, reason: str) -> Outcome:
    await store.delete([staged.key])
    log.info("staged segment dropped", key=staged.key, reason=reason)
    return Outcome(staged, f"{Partition(*staged.place)}: {reason}", is_outdated=True)


async def _is_in_place(store: ObjectStore, staged: Staged) -> bool:
    try:
        return await checksum(store, staged.group.sources[0].key) == staged.checksum
    except OperatingError:
        return False


async def _wait(store: ObjectStore, key: str) -> None:
    """Wait until an owner that goes on with a swap has removed what was staged for it."""
    for _ in range(WAITS_MAX):
        try:
            await store.head(key)
        except ObjectNotFoundError:
            return
        await asyncio.sleep(WAIT_SECONDS)
