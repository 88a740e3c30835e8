"""PartitionOwners finds the owner of a partition, again after it has changed."""

import asyncio

import pytest

from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import Partition, SwapSegmentsResponse
from kafscale.errors import InvalidRequestError, NotOwnerError, OperatingError
from kafscale.spark.jobs.shared.owners import ATTEMPTS_MAX, PartitionOwners
from unit.cli.control_plane_cluster import FakeBroker, control_planes

JOB = "merge-1-0"


class OwningBroker(FakeBroker):
    """A broker that swaps segments of its own partitions only."""

    async def swap_segments(self, partition, job, checksums):
        if self.state["owners"].get(partition.number) != self.id:
            raise NotOwnerError(f"not the owner of {partition}")
        if job != JOB:
            raise InvalidRequestError("there are no segments")
        assert list(checksums) == [7, 2**32 - 1]
        self.calls.append(partition)
        return SwapSegmentsResponse(end_offset=self.id)


def scenario(body, **changes):
    async def run():
        async with control_planes(broker_type=OwningBroker, **changes) as (_, state):
            await body(state)

    asyncio.run(run())


async def swap(state, partition, *, sleep=None):
    async def pause(_seconds):
        if sleep is not None:
            sleep()

    async with PartitionOwners([str(state["address"])], sleep=pause) as owners:
        return (await owners.swap(Partition("orders", partition), JOB, [7, 2**32 - 1])).end_offset


def test_swap_is_sent_to_the_owner_of_each_partition():
    async def body(state):
        assert [await swap(state, number) for number in range(3)] == [1, 2, 1]

    scenario(body)


def test_swap_finds_the_new_owner_of_a_moved_partition():
    async def body(state):
        async with PartitionOwners(
            [str(state["address"])], sleep=lambda _: asyncio.sleep(0)
        ) as owners:
            state["owners"][0] = 2
            response = await owners.swap(Partition("orders", 0), JOB, [7, 2**32 - 1])
            assert response.end_offset == 2

    scenario(body)


def test_swap_waits_until_a_partition_has_an_owner():
    async def body(state):
        pauses = []

        def sleep():
            pauses.append(1)
            if len(pauses) == 3:
                state["owners"][7] = 1

        assert await swap(state, 7, sleep=sleep) == 1
        with pytest.raises(OperatingError, match="no broker serves orders/9"):
            await swap(state, 9)
        assert len(pauses) < ATTEMPTS_MAX

    scenario(body)


def test_swap_raises_the_error_of_a_rejecting_owner():
    async def body(state):
        async with PartitionOwners([str(state["address"])]) as owners:
            with pytest.raises(ControlError, match="there are no segments") as rejected:
                await owners.swap(Partition("orders", 0), "another")
            assert rejected.value.status == "INVALID_ARGUMENT"

    scenario(body)


def test_unreachable_brokers_fail_at_once():
    async def body():
        async with PartitionOwners(["127.0.0.1:1"]):
            raise AssertionError("a broker has answered")

    with pytest.raises(OperatingError, match="no broker responds"):
        asyncio.run(body())
