"""Segments are swapped in in order, and judged by what became of them."""

import asyncio

import pytest

from kafscale.control_plane.errors import ControlError, UnreachableError
from kafscale.errors import OperatingError
from kafscale.spark.jobs.merge.job import merge_one, plan
from kafscale.spark.jobs.shared import swapping
from kafscale.spark.log.bucket_listing import list_bucket
from unit.spark.jobs.keyed import MemoryLocation
from unit.spark.stored_log import NAMESPACE, TOPIC, put_segment


class Owner:
    """Who swaps, in the order in which it is asked; or says why not."""

    def __init__(self, store, refusals=()) -> None:
        self.store = store
        self.asked = []
        self.refusals = list(refusals)
        self.swaps_before_it_fails = False

    async def swap(self, partition, job):
        self.asked.append((partition, job))
        refusal = self.refusals.pop(0) if self.refusals else None
        if refusal is None or self.swaps_before_it_fails:
            await self._swap(partition, job)
        if refusal is not None:
            raise refusal

    async def _swap(self, partition, job):
        prefix = f"{NAMESPACE}/_staging/{job}/{partition.topic}/{partition.number}/"
        async for chunk in self.store.list(prefix):
            for item in chunk:
                name = item.key.rpartition("/")[2]
                place = f"{NAMESPACE}/{partition.topic}/{partition.number}/{name}"
                await self.store.put(place, [await self.store.get(item.key)], create=False)
                await self.store.delete([item.key])


@pytest.fixture
def location():
    return MemoryLocation()


@pytest.fixture
def staged(location):
    """Two groups of one partition, and one of another."""
    with location.open() as store:
        for base in range(0, 40, 10):
            put_segment(store, range(base, base + 10))
            put_segment(store, range(base, base + 10), partition=1)
        size_bytes = store.head(f"{NAMESPACE}/{TOPIC}/0/segment-{10:020d}.kfs").size_bytes
        groups = list(plan(list_bucket(store, NAMESPACE, [TOPIC]), 2 * size_bytes + 10))
        assert len(groups) == 4
        return [merge_one(location, "run", 0, group) for group in groups[:3]]


def swapped(location, staged, *refusals, is_late=False):
    owner = Owner(location.objects, refusals)
    owner.swaps_before_it_fails = is_late
    steps = []
    found = asyncio.run(
        swapping.swap_in(location.objects, owner, staged[::-1], reached=steps.append)
    )
    assert [outcome.staged for outcome in found] == staged
    assert len(steps) == len(staged)
    return owner, found


def left(location):
    return sorted(key for key in location.objects._objects if "_staging" in key)


def test_each_partition_is_swapped_in_its_order(location, staged):
    owner, found = swapped(location, staged)
    assert all(outcome.is_swapped for outcome in found)
    own = [job for partition, job in owner.asked if partition.number == 0]
    assert own == [staged[0].job, staged[1].job]
    assert left(location) == []


def test_what_is_refused_is_dropped_and_the_others_go_on(location, staged):
    refusal = ControlError("broker", "INVALID_ARGUMENT", "no run of segments spans that")
    owner, found = swapped(location, staged, refusal)
    assert [outcome.is_swapped for outcome in found] == [False, True, True]
    assert [outcome.is_outdated for outcome in found] == [True, False, False]
    assert "no run of segments" in found[0].problem
    assert len(owner.asked) == 3
    assert left(location) == []
    assert swapping.problems(found, []) == ()


def test_what_has_changed_meanwhile_is_not_swapped(location, staged):
    with location.open() as store:
        put_segment(store, range(10, 25))
    owner, found = swapped(location, staged)
    assert [outcome.is_outdated for outcome in found] == [True, False, False]
    assert len(owner.asked) == 2


def test_what_nobody_answers_for_is_judged_by_its_outcome(location, staged):
    lost = UnreachableError("broker", "UNAVAILABLE", "connection reset")
    _, found = swapped(location, staged[:1], lost, is_late=True)
    assert found[0].is_swapped


def test_what_fails_is_told_and_can_be_tried_again(location, staged):
    _, [outcome] = swapped(location, staged[:1], OperatingError("no broker serves orders/0"))
    assert (outcome.is_swapped, outcome.is_outdated) == (False, False)
    [problem] = swapping.problems([outcome], [])
    assert "no broker serves" in problem
    assert left(location)
    _, [outcome] = swapped(location, staged[:1])
    assert outcome.is_swapped
