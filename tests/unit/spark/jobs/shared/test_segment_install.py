"""Staged segments are swapped in log order, and outcomes are judged by the result."""

import asyncio

import pytest

from kafscale.control_plane.errors import ControlError, UnreachableError
from kafscale.errors import OperatingError
from kafscale.spark.jobs.merge.job import merge_group, plan
from kafscale.spark.jobs.shared import segment_install
from kafscale.spark.read.bucket_listing import list_bucket
from unit.spark.jobs.keyed_log import MemoryLocation
from unit.spark.stored_log import NAMESPACE, TOPIC, put_segment


class FakeOwners:
    """Swaps in the order of requests, or raises the given errors."""

    def __init__(self, store, errors=()) -> None:
        self.store = store
        self.requests = []
        self.errors = list(errors)
        self.swaps_before_failing = False

    async def swap(self, partition, job, checksums):
        assert all(checksums), "the owner compares them"
        self.requests.append((partition, job))
        error = self.errors.pop(0) if self.errors else None
        if error is None or self.swaps_before_failing:
            await self._swap(partition, job)
        if error is not None:
            raise error

    async def _swap(self, partition, job):
        prefix = f"{NAMESPACE}/_staging/{job}/{partition.topic}/{partition.number}/"
        async for chunk in self.store.list(prefix):
            for item in chunk:
                name = item.key.rpartition("/")[2]
                key = f"{NAMESPACE}/{partition.topic}/{partition.number}/{name}"
                await self.store.put(key, [await self.store.get(item.key)], create=False)
                await self.store.delete([item.key])


@pytest.fixture
def location():
    return MemoryLocation()


@pytest.fixture
def staged(location):
    """Two groups of one partition and one group of another."""
    with location.open() as store:
        for base in range(0, 40, 10):
            put_segment(store, range(base, base + 10))
            put_segment(store, range(base, base + 10), partition=1)
        size_bytes = store.head(f"{NAMESPACE}/{TOPIC}/0/segment-{10:020d}.kfs").size_bytes
        groups = list(plan(list_bucket(store, NAMESPACE, [TOPIC]), 2 * size_bytes + 10))
        assert len(groups) == 4
        return [merge_group(location, "run", 0, group) for group in groups[:3]]


def swap(location, staged, *errors, is_late=False):
    owners = FakeOwners(location.objects, errors)
    owners.swaps_before_failing = is_late
    steps = []
    outcomes = asyncio.run(
        segment_install.swap_all(location.objects, owners, staged[::-1], on_step=steps.append)
    )
    assert [outcome.staged for outcome in outcomes] == staged
    assert len(steps) == len(staged)
    return owners, outcomes


def staged_keys(location):
    return sorted(key for key in location.objects._objects if "_staging" in key)


def test_segments_of_a_partition_are_swapped_in_log_order(location, staged):
    owners, outcomes = swap(location, staged)
    assert all(outcome.is_swapped for outcome in outcomes)
    own = [job for partition, job in owners.requests if partition.number == 0]
    assert own == [staged[0].name, staged[1].name]
    assert staged_keys(location) == []


def test_a_rejected_segment_is_dropped_and_the_others_are_swapped(location, staged):
    rejection = ControlError("broker", "INVALID_ARGUMENT", "no run of segments spans that")
    owners, outcomes = swap(location, staged, rejection)
    assert [outcome.is_swapped for outcome in outcomes] == [False, True, True]
    assert [outcome.is_outdated for outcome in outcomes] == [True, False, False]
    assert "no run of segments" in outcomes[0].problem
    assert len(owners.requests) == 3
    assert staged_keys(location) == []
    assert segment_install.problems(outcomes, []) == ()


def test_a_segment_whose_sources_have_changed_is_not_swapped(location, staged):
    with location.open() as store:
        put_segment(store, range(10, 25))
    owners, outcomes = swap(location, staged)
    assert [outcome.is_outdated for outcome in outcomes] == [True, False, False]
    assert len(owners.requests) == 2


def test_a_swap_without_a_response_is_judged_by_its_result(location, staged):
    lost = UnreachableError("broker", "UNAVAILABLE", "connection reset")
    _, outcomes = swap(location, staged[:1], lost, is_late=True)
    assert outcomes[0].is_swapped


def test_a_failed_swap_is_reported_and_can_be_retried(location, staged):
    _, [outcome] = swap(location, staged[:1], OperatingError("no broker serves orders/0"))
    assert (outcome.is_swapped, outcome.is_outdated) == (False, False)
    [problem] = segment_install.problems([outcome], [])
    assert "no broker serves" in problem
    assert staged_keys(location)
    _, [outcome] = swap(location, staged[:1])
    assert outcome.is_swapped
