"""What a consumer in a group reads and commits, with a group that does as the test says."""

import asyncio
from collections import deque
from contextlib import aclosing

import pytest

from kafscale.client.consumer.group_reader import GroupReader
from kafscale.client.consumer.reader import Chunk
from kafscale.client.errors import AnsweredError, UnreachableError
from kafscale.config.sections.client import Consumer
from kafscale.protocol.error_codes import ErrorCode

A, B = ("orders", 0), ("orders", 1)
SETTINGS = Consumer(heartbeat_interval_ms=0, max_poll_interval_ms=1000)


class ScriptedMember:
    """Is assigned one list of partitions after the other, and writes down all that it does."""

    group_id = "billing"

    def __init__(self, *assignments):
        self.story = []
        self.generation = 0
        self.refusal = None
        self._assignments = deque(assignments)
        self._rebalance = asyncio.Event()

    def rebalance(self):
        """Let the next heartbeat tell that a new generation begins."""
        self._rebalance.set()

    async def join(self):
        self._rebalance.clear()
        self.generation += 1
        self.story.append("join")
        return self._assignments.popleft()

    async def heartbeat(self):
        return not self._rebalance.is_set()

    async def has_outgrown(self):
        return False

    async def commit(self, offsets):
        if self.refusal is not None:
            raise AnsweredError("group billing", self.refusal)
        self.story.append(dict(offsets))

    async def leave(self, reason):
        self.story.append(f"leave: {reason}")
        self.rebalance()


class World:
    """A group reader with everything around it."""

    def __init__(self, member, *, follow=True):
        self.told = []
        self.now_ms = 0
        self.opened = []
        self.queues = {}
        self.member = member
        self.reader = GroupReader(
            member,
            self._open,
            SETTINGS,
            follow=follow,
            notify=self.told.append,
            clock=lambda: self.now_ms,
        )

    async def _open(self, places):
        self.opened.append(places)
        return self._batches(list(places))

    async def _batches(self, places):
        """Chunks of ten records each, as many as the test has put there."""
        while places:
            for place in places:
                while queue := self.queues.get(place):
                    yield Chunk(place, [], queue.popleft())
            if not self.reader._follow:
                return
            await asyncio.sleep(0)

    def put(self, place, *next_offsets):
        self.queues.setdefault(place, deque()).extend(next_offsets)


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


def test_what_was_printed_is_committed_before_partitions_are_given_up():
    async def story():
        member = ScriptedMember([A], [A, B])
        world = World(member)
        world.put(A, 10, 20)
        async with world.reader as reader, aclosing(reader.batches()) as batches:
            chunk = await anext(batches)
            member.rebalance()
            reader.printed(A, chunk.next_offset)
            world.put(B, 5)
            chunk = await anext(batches)
            assert member.story == ["join", {A: 10}, "join"]
            assert world.opened == [[A], [A, B]]
        assert member.story[3:] == ["leave: the consumer ends"]

    asyncio.run(story())


def test_commits_go_with_the_heartbeats_and_only_when_there_is_something_new():
    async def story():
        member = ScriptedMember([A])
        world = World(member)
        world.put(A, 10)
        async with world.reader as reader, aclosing(reader.batches()) as batches:
            await anext(batches)
            await settle()
            assert member.story == ["join"], "handed out is not printed"
            reader.printed(A, 10)
            await settle()
            assert member.story == ["join", {A: 10}]

    asyncio.run(story())


def test_at_the_end_what_was_printed_is_committed_and_the_group_is_left():
    async def story():
        member = ScriptedMember([A])
        world = World(member, follow=False)
        world.put(A, 10, 20)
        async with world.reader as reader:
            async for chunk in reader.batches():
                reader.printed(chunk.place, chunk.next_offset)
        assert member.story[-2:] == [{A: 20}, "leave: the consumer ends"]

    asyncio.run(story())


def test_who_is_interrupted_commits_and_leaves():
    async def story():
        member = ScriptedMember([A])
        world = World(member)
        world.put(A, 10)

        async def consume():
            async with world.reader as reader, aclosing(reader.batches()) as batches:
                async for chunk in batches:
                    reader.printed(chunk.place, chunk.next_offset)

        consuming = asyncio.ensure_future(consume())
        await settle()
        consuming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consuming
        assert member.story[-1] == "leave: the consumer ends"
        assert {A: 10} in member.story

    asyncio.run(story())


def test_who_has_nothing_to_read_waits_for_the_next_generation():
    async def story():
        member = ScriptedMember([], [A])
        world = World(member)
        world.put(A, 10)
        async with world.reader as reader, aclosing(reader.batches()) as batches:
            coming = asyncio.ensure_future(anext(batches))
            await settle()
            assert not coming.done()
            member.rebalance()
            assert (await coming).place == A
        assert world.told[:2] == [
            "group billing, generation 1: nothing to read",
            "group billing, generation 2: orders 0",
        ]

    asyncio.run(story())


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS])
def test_what_could_not_be_committed_in_time_never_is(code):
    """By then the partition may be somebody else's, who has come further."""

    async def story():
        member = ScriptedMember([A], [B])
        world = World(member)
        world.put(A, 10)
        async with world.reader as reader, aclosing(reader.batches()) as batches:
            await anext(batches)
            member.refusal = code
            member.rebalance()
            reader.printed(A, 10)
            world.put(B, 5)
            await anext(batches)
            member.refusal = None
        assert member.story == ["join", "join", "leave: the consumer ends"]
        assert any("printed again" in line for line in world.told) == (
            code is ErrorCode.UNKNOWN_MEMBER_ID
        )

    asyncio.run(story())


def test_who_takes_too_long_leaves_and_joins_again_when_done():
    async def story():
        member = ScriptedMember([A], [A])
        world = World(member)
        world.put(A, 10, 20)
        async with world.reader as reader, aclosing(reader.batches()) as batches:
            await anext(batches)
            world.now_ms += 1000
            await settle()
            assert member.story == ["join"]
            world.now_ms += 1
            await settle()
            assert member.story == ["join", "leave: its records are not taken"]
            await anext(batches)
            assert member.story[2:] == ["join"]

    asyncio.run(story())


def test_who_waits_for_records_does_not_take_too_long():
    async def story():
        member = ScriptedMember([A])
        world = World(member)
        async with world.reader as reader, aclosing(reader.batches()) as batches:
            coming = asyncio.ensure_future(anext(batches))
            await settle()
            world.now_ms += 1_000_000
            await settle()
            world.put(A, 10)
            await coming
        assert member.story == ["join", "leave: the consumer ends"]

    asyncio.run(story())


def test_what_goes_wrong_beside_the_reading_ends_it():
    async def story():
        member = ScriptedMember([A])
        world = World(member)

        async def refuse():
            raise AnsweredError("group billing", ErrorCode.GROUP_AUTHORIZATION_FAILED)

        member.heartbeat = refuse
        with pytest.raises(AnsweredError, match="GROUP_AUTHORIZATION_FAILED"):
            async with world.reader as reader, aclosing(reader.batches()) as batches:
                await anext(batches)
        assert member.story == ["join", "leave: the consumer ends"]

    asyncio.run(story())


def test_a_group_that_cannot_be_left_in_order_does_not_hide_how_it_ended():
    async def story():
        member = ScriptedMember([A])
        world = World(member, follow=False)

        async def fail(_):
            raise UnreachableError("no broker listens")

        member.leave = fail
        async with world.reader as reader:
            assert [chunk async for chunk in reader.batches()] == []
        assert world.told[-1] == "group billing was not left in order: no broker listens"

    asyncio.run(story())
