"""The group reader with a scripted member."""

import asyncio
from collections import deque
from contextlib import aclosing

import pytest

from kafscale.client.consumer.group_reader import GroupReader
from kafscale.client.consumer.reader import Chunk
from kafscale.client.errors import BrokerResponseError, UnreachableError
from kafscale.config.sections.client import Consumer
from kafscale.protocol.error_codes import ErrorCode

A, B = ("orders", 0), ("orders", 1)
SETTINGS = Consumer(heartbeat_interval_ms=0, max_poll_interval_ms=1000)


class ScriptedMember:
    """Gets one assignment after the other, and records all calls."""

    group_id = "billing"

    def __init__(self, *assignments):
        self.events = []
        self.generation = 0
        self.commit_error = None
        self._assignments = deque(assignments)
        self._rebalance = asyncio.Event()

    def rebalance(self):
        """Let the next heartbeat report a rebalance."""
        self._rebalance.set()

    async def join(self):
        self._rebalance.clear()
        self.generation += 1
        self.events.append("join")
        return self._assignments.popleft()

    async def heartbeat(self):
        return not self._rebalance.is_set()

    async def partitions_changed(self):
        return False

    async def commit(self, offsets):
        if self.commit_error is not None:
            raise BrokerResponseError("group billing", self.commit_error)
        self.events.append(dict(offsets))

    async def leave(self, reason):
        self.events.append(f"leave: {reason}")
        self.rebalance()


class Scenario:
    """A group reader with fake partitions and a fake clock."""

    def __init__(self, member, *, follow=True):
        self.notices = []
        self.now_ms = 0
        self.opened = []
        self.queues = {}
        self.member = member
        self.reader = GroupReader(
            member,
            self._open,
            SETTINGS,
            follow=follow,
            notify=self.notices.append,
            clock=lambda: self.now_ms,
        )

    async def _open(self, topic_partitions):
        self.opened.append(topic_partitions)
        return self._batches(list(topic_partitions))

    async def _batches(self, topic_partitions):
        """Yield the chunks that the test has queued."""
        while topic_partitions:
            for topic_partition in topic_partitions:
                while queue := self.queues.get(topic_partition):
                    yield Chunk(topic_partition, [], queue.popleft())
            if not self.reader._follow:
                return
            await asyncio.sleep(0)

    def put(self, topic_partition, *next_offsets):
        self.queues.setdefault(topic_partition, deque()).extend(next_offsets)


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


def test_consumed_offsets_are_committed_before_a_rebalance():
    async def run():
        member = ScriptedMember([A], [A, B])
        scenario = Scenario(member)
        scenario.put(A, 10, 20)
        async with scenario.reader as reader, aclosing(reader.batches()) as batches:
            chunk = await anext(batches)
            member.rebalance()
            reader.mark_consumed(A, chunk.next_offset)
            scenario.put(B, 5)
            chunk = await anext(batches)
            assert member.events == ["join", {A: 10}, "join"]
            assert scenario.opened == [[A], [A, B]]
        assert member.events[3:] == ["leave: the consumer was closed"]

    asyncio.run(run())


def test_new_offsets_are_committed_with_heartbeats():
    async def run():
        member = ScriptedMember([A])
        scenario = Scenario(member)
        scenario.put(A, 10)
        async with scenario.reader as reader, aclosing(reader.batches()) as batches:
            await anext(batches)
            await settle()
            assert member.events == ["join"], "yielded records are not consumed yet"
            reader.mark_consumed(A, 10)
            await settle()
            assert member.events == ["join", {A: 10}]

    asyncio.run(run())


def test_exit_commits_and_leaves_the_group():
    async def run():
        member = ScriptedMember([A])
        scenario = Scenario(member, follow=False)
        scenario.put(A, 10, 20)
        async with scenario.reader as reader:
            async for chunk in reader.batches():
                reader.mark_consumed(chunk.topic_partition, chunk.next_offset)
        assert member.events[-2:] == [{A: 20}, "leave: the consumer was closed"]

    asyncio.run(run())


def test_cancelled_reader_commits_and_leaves():
    async def run():
        member = ScriptedMember([A])
        scenario = Scenario(member)
        scenario.put(A, 10)

        async def consume():
            async with scenario.reader as reader, aclosing(reader.batches()) as batches:
                async for chunk in batches:
                    reader.mark_consumed(chunk.topic_partition, chunk.next_offset)

        consuming = asyncio.ensure_future(consume())
        await settle()
        consuming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consuming
        assert member.events[-1] == "leave: the consumer was closed"
        assert {A: 10} in member.events

    asyncio.run(run())


def test_member_without_partitions_waits_for_the_next_generation():
    async def run():
        member = ScriptedMember([], [A])
        scenario = Scenario(member)
        scenario.put(A, 10)
        async with scenario.reader as reader, aclosing(reader.batches()) as batches:
            next_chunk = asyncio.ensure_future(anext(batches))
            await settle()
            assert not next_chunk.done()
            member.rebalance()
            assert (await next_chunk).topic_partition == A
        assert scenario.notices[:2] == [
            "group billing, generation 1: no partitions assigned",
            "group billing, generation 2: orders 0",
        ]

    asyncio.run(run())


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS])
def test_offsets_of_a_lost_generation_are_dropped(code):
    """Another member may own the partition and have read further."""

    async def run():
        member = ScriptedMember([A], [B])
        scenario = Scenario(member)
        scenario.put(A, 10)
        async with scenario.reader as reader, aclosing(reader.batches()) as batches:
            await anext(batches)
            member.commit_error = code
            member.rebalance()
            reader.mark_consumed(A, 10)
            scenario.put(B, 5)
            await anext(batches)
            member.commit_error = None
        assert member.events == ["join", "join", "leave: the consumer was closed"]
        assert any("consumed again" in line for line in scenario.notices) == (
            code is ErrorCode.UNKNOWN_MEMBER_ID
        )

    asyncio.run(run())


def test_slow_consumer_leaves_and_rejoins():
    async def run():
        member = ScriptedMember([A], [A])
        scenario = Scenario(member)
        scenario.put(A, 10, 20)
        async with scenario.reader as reader, aclosing(reader.batches()) as batches:
            await anext(batches)
            scenario.now_ms += 1000
            await settle()
            assert member.events == ["join"]
            scenario.now_ms += 1
            await settle()
            assert member.events == ["join", "leave: max.poll.interval.ms exceeded"]
            await anext(batches)
            assert member.events[2:] == ["join"]

    asyncio.run(run())


def test_waiting_for_records_does_not_count_as_slow():
    async def run():
        member = ScriptedMember([A])
        scenario = Scenario(member)
        async with scenario.reader as reader, aclosing(reader.batches()) as batches:
            next_chunk = asyncio.ensure_future(anext(batches))
            await settle()
            scenario.now_ms += 1_000_000
            await settle()
            scenario.put(A, 10)
            await next_chunk
        assert member.events == ["join", "leave: the consumer was closed"]

    asyncio.run(run())


def test_heartbeat_error_ends_the_reader():
    async def run():
        member = ScriptedMember([A])
        scenario = Scenario(member)

        async def fail_heartbeat():
            raise BrokerResponseError("group billing", ErrorCode.GROUP_AUTHORIZATION_FAILED)

        member.heartbeat = fail_heartbeat
        with pytest.raises(BrokerResponseError, match="GROUP_AUTHORIZATION_FAILED"):
            async with scenario.reader as reader, aclosing(reader.batches()) as batches:
                await anext(batches)
        assert member.events == ["join", "leave: the consumer was closed"]

    asyncio.run(run())


def test_failed_leave_is_only_a_notice():
    async def run():
        member = ScriptedMember([A])
        scenario = Scenario(member, follow=False)

        async def fail(_):
            raise UnreachableError("no broker listens")

        member.leave = fail
        async with scenario.reader as reader:
            assert [chunk async for chunk in reader.batches()] == []
        assert scenario.notices[-1] == "could not commit and leave group billing: no broker listens"

    asyncio.run(run())
