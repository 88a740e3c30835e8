"""Owners are found wherever they are, and looked for again when they have changed."""

import asyncio

import pytest

from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import SwapSegmentsResponse
from kafscale.control_plane.partition import Partition
from kafscale.errors import InvalidRequestError, NotOwnerError, OperatingError
from kafscale.spark.jobs.shared.owners import LOOKS_MAX, Owners
from unit.cli.control_planes import BookBroker, control_planes

JOB = "merge-1-0"


class OwningBroker(BookBroker):
    """A broker that swaps for the partitions that are its own."""

    async def swap_segments(self, partition, job):
        if self.book["owners"].get(partition.number) != self.id:
            raise NotOwnerError(f"not the owner of {partition}")
        if job != JOB:
            raise InvalidRequestError("there are no segments")
        self.asked.append(partition)
        return SwapSegmentsResponse(end_offset=self.id)


def scenario(body, **book):
    async def run():
        async with control_planes(make=OwningBroker, **book) as (_, found):
            await body(found)

    asyncio.run(run())


async def swapped(book, partition, *, sleep=None):
    async def pause(_seconds):
        if sleep is not None:
            sleep()

    async with Owners([str(book["address"])], sleep=pause) as owners:
        return (await owners.swap(Partition("orders", partition), JOB)).end_offset


def test_every_owner_is_asked_itself():
    async def body(book):
        assert [await swapped(book, number) for number in range(3)] == [1, 2, 1]

    scenario(body)


def test_a_partition_that_has_moved_is_found_again():
    async def body(book):
        async with Owners([str(book["address"])], sleep=lambda _: asyncio.sleep(0)) as owners:
            book["owners"][0] = 2
            answer = await owners.swap(Partition("orders", 0), JOB)
            assert answer.end_offset == 2

    scenario(body)


def test_a_partition_that_nobody_has_is_waited_for():
    async def body(book):
        pauses = []

        def sleep():
            pauses.append(1)
            if len(pauses) == 3:
                book["owners"][7] = 1

        assert await swapped(book, 7, sleep=sleep) == 1
        with pytest.raises(OperatingError, match="no broker serves orders/9"):
            await swapped(book, 9)
        assert len(pauses) < LOOKS_MAX

    scenario(body)


def test_a_refusal_is_raised_as_it_is():
    async def body(book):
        async with Owners([str(book["address"])]) as owners:
            with pytest.raises(ControlError, match="there are no segments") as refused:
                await owners.swap(Partition("orders", 0), "another")
            assert refused.value.status == "INVALID_ARGUMENT"

    scenario(body)


def test_nobody_there_is_told_at_once():
    async def body():
        async with Owners(["127.0.0.1:1"]):
            raise AssertionError("there was somebody")

    with pytest.raises(OperatingError, match="by the brokers that own them"):
        asyncio.run(body())
