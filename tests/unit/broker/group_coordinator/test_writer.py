"""The group writer: shared transactions, in order, however often the store fails, while it may."""

import asyncio
from functools import partial
from random import Random

import pytest

from kafscale.broker.group_coordinator.pausable_clock import GroupClock
from kafscale.broker.group_coordinator.shard_session import Tenure
from kafscale.broker.group_coordinator.writer import GroupWriter
from kafscale.errors import CoordinatorUnavailableError, NotCoordinatorError, StoreUnavailableError
from kafscale.metadata.store.base import COMMIT_BYTES_MAX, OPERATIONS_MAX, Delete, Put
from kafscale.metadata.store.memory import MemoryStore
from kafscale.testing import virtual_time
from unit.broker.group_coordinator.claiming import ask_to_move, claim_shards

US, THEM = 1, 2
GONE = NotCoordinatorError("gone")


class SlowStore(MemoryStore):
    """Takes a second for a commit, keeps what was committed, and fails as often as it is told."""

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms)
        self.commits: list[list[str]] = []
        self.refused: list[list[str]] = []
        self.failures = 0
        self.failures_to_read = 0
        self.is_slow = False

    async def commit(self, compares, operations):
        if not self.is_slow:
            return await super().commit(compares, operations)
        await asyncio.sleep(1)
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("not now")
        done = await super().commit(compares, operations)
        kept = self.commits if done.succeeded else self.refused
        kept.append([operation.key for operation in operations])
        return done

    async def get(self, key):
        if self.failures_to_read:
            self.failures_to_read -= 1
            raise StoreUnavailableError("not now")
        return await super().get(key)


class Desk:
    """A writer at work, and tenures of as many shards as a test needs."""

    def __init__(self, store, linger_ms):
        self.store = store
        self.lost = []
        clock = GroupClock(virtual_time.clock_ms, virtual_time.clock_ms)
        self.writer = GroupWriter(
            store, clock, linger_ms=linger_ms, random=Random(0), lost=self._lose
        )

    async def tenures(self, count):
        guards = await claim_shards(self.store, US, 1, range(count))
        return [Tenure(shard, guard, self.writer.rouse) for shard, guard in guards.items()]

    def _lose(self, tenure):
        self.lost.append(tenure.shard)
        tenure.end(GONE)


def put(key, value=b"1"):
    return {key: lambda: Put(key, value)}


def story(body, linger_ms=5, shards=1):
    async def scenario(_random):
        desk = Desk(SlowStore(), linger_ms)
        tenures = await desk.tenures(shards)
        desk.store.is_slow = True
        running = asyncio.create_task(desk.writer.run())
        try:
            await body(desk, *tenures)
        finally:
            running.cancel()
            await asyncio.wait([running])

    virtual_time.run(scenario, seed=0)


def test_what_comes_together_goes_together():
    async def body(desk, tenure):
        for key in ("/a", "/b"):
            tenure.write(put(key))
        await asyncio.sleep(0.003)
        tenure.write(put("/c"))
        await tenure.durable_within(10)
        assert desk.store.commits == [["/a", "/b", "/c"]]
        assert desk.writer.transactions == 1

    story(body)


def test_what_comes_while_the_store_is_busy_goes_in_the_next_transaction():
    async def body(desk, tenure):
        tenure.write(put("/a"))
        await asyncio.sleep(0.5)
        tenure.write(put("/b", b"old"))
        tenure.write(put("/c"))
        tenure.write(put("/b", b"new"))
        await tenure.durable_within(10)
        assert desk.store.commits == [["/a"], ["/b", "/c"]]
        assert (await desk.store.get("/b")).value == b"new"

    story(body)


def test_a_value_is_made_when_it_leaves():
    async def body(desk, tenure):
        value = [b"as asked"]
        tenure.write({"/a": lambda: Put("/a", value[0])})
        value[0] = b"as it left"
        await tenure.durable_within(10)
        assert (await desk.store.get("/a")).value == b"as it left"

    story(body)


def test_everybody_is_called_in_order_once_what_they_asked_for_is_durable():
    async def body(_desk, tenure):
        called = []
        tenure.when_durable(partial(called.append, "nothing to wait for"))
        assert called == ["nothing to wait for"]
        tenure.write(put("/a"))
        tenure.when_durable(partial(called.append, "a"))
        await asyncio.sleep(0.5)
        tenure.when_durable(partial(called.append, "a, on its way"))
        tenure.write(put("/b"))
        tenure.when_durable(partial(called.append, "b"))
        assert called == ["nothing to wait for"]
        await asyncio.sleep(0.6)
        assert called[1:] == ["a", "a, on its way"]
        await asyncio.sleep(1)
        assert called[3:] == ["b"]

    story(body)


def test_a_store_that_fails_is_asked_again_and_nothing_is_skipped():
    async def body(desk, tenure):
        desk.store.failures = 3
        tenure.write(put("/a"))
        await asyncio.sleep(1.5)
        tenure.write(put("/b"))
        await tenure.durable_within(60)
        assert desk.store.commits == [["/a"], ["/b"]]

    story(body)


def test_who_cannot_wait_is_told_to_try_again_and_the_write_is_made_all_the_same():
    async def body(desk, tenure):
        desk.store.failures = 5
        tenure.write(put("/a"))
        with pytest.raises(CoordinatorUnavailableError):
            await tenure.durable_within(2)
        await tenure.durable_within(60)
        assert desk.store.commits == [["/a"]]

    story(body)


def test_many_operations_are_split_as_the_store_wants_it():
    async def body(desk, tenure):
        keys = [f"/{number}" for number in range(2 * OPERATIONS_MAX + 1)]
        for key in keys:
            tenure.write(put(key))
        await tenure.durable_within(60)
        assert [len(commit) for commit in desk.store.commits] == [OPERATIONS_MAX, OPERATIONS_MAX, 1]
        assert [key for commit in desk.store.commits for key in commit] == keys

    story(body)


def test_large_values_are_split_and_one_that_can_never_fit_does_not_stop_the_others():
    async def body(desk, tenure):
        half = bytes(COMMIT_BYTES_MAX // 2)
        for key in ("/a", "/b", "/c"):
            tenure.write(put(key, half))
        tenure.write(put("/huge", bytes(COMMIT_BYTES_MAX)))
        await tenure.durable_within(60)
        assert desk.store.commits == [["/a"], ["/b"], ["/c"]]

    story(body)


def test_a_deletion_takes_the_place_of_a_value_that_waits():
    async def body(desk, tenure):
        tenure.write(put("/a"))
        tenure.write({"/a": lambda: Delete("/a")})
        await tenure.durable_within(10)
        assert desk.store.commits == [["/a"]]
        assert await desk.store.get("/a") is None

    story(body)


def test_the_end_waits_for_nobody_else_to_come():
    async def body(desk, tenure):
        began = asyncio.get_running_loop().time()
        tenure.write(put("/a"))
        await asyncio.sleep(0)
        await desk.writer.finish(10)
        assert desk.store.commits == [["/a"]]
        assert asyncio.get_running_loop().time() - began < 2

    story(body, linger_ms=5_000)


# --- whose a shard is ---------------------------------------------------------------------------


def test_shards_share_a_transaction_which_compares_all_of_them():
    async def body(desk, *tenures):
        for tenure in tenures:
            tenure.write(put(f"/{tenure.shard}"))
        await asyncio.gather(*(tenure.durable_within(10) for tenure in tenures))
        assert desk.store.commits == [[f"/{shard}" for shard in range(50)]]

    story(body, shards=50)


def test_a_lost_shard_is_left_out_and_the_others_are_written():
    async def body(desk, ours, lost, also_ours):
        for tenure in (ours, lost, also_ours):
            tenure.write(put(f"/{tenure.shard}"))
        await claim_shards(desk.store, THEM, 1, [lost.shard])
        ends = await asyncio.gather(
            *(each.durable_within(10) for each in (ours, lost, also_ours)), return_exceptions=True
        )
        assert ends == [None, GONE, None]
        assert desk.lost == [lost.shard]
        assert desk.store.refused == [["/0", "/1", "/2"]]
        assert desk.store.commits[-1] == ["/0", "/2"]
        assert await desk.store.get("/1") is None

    story(body, shards=3)


def test_a_claim_that_changed_but_is_ours_is_renewed():
    async def body(desk, tenure):
        await ask_to_move(desk.store, tenure.shard, THEM)
        tenure.write(put("/a"))
        await tenure.durable_within(10)
        tenure.write(put("/b"))
        await tenure.durable_within(10)
        assert desk.store.refused == [["/a"]]
        assert desk.store.commits[-2:] == [["/a"], ["/b"]]
        assert desk.lost == []

    story(body)


def test_claims_are_asked_about_until_the_store_answers():
    async def body(desk, tenure):
        await claim_shards(desk.store, THEM, 1, [tenure.shard])
        desk.store.failures_to_read = 4
        tenure.write(put("/a"))
        with pytest.raises(NotCoordinatorError):
            await tenure.durable_within(60)
        assert desk.store.failures_to_read == 0
        assert await desk.store.get("/a") is None

    story(body)


def test_nothing_more_is_written_in_a_tenure_that_has_ended():
    async def body(desk, ended, other):
        told = []
        desk.store.failures = 5
        ended.write(put("/on its way"))
        ended.when_durable(partial(told.append, "written"), lost=told.append)
        await asyncio.sleep(1.5)
        ended.write(put("/asked for"))
        ended.when_durable(partial(told.append, "written"), lost=told.append)
        other.write(put("/other"))
        ended.end(GONE)
        ended.write(put("/too late"))
        ended.when_durable(partial(told.append, "written"), lost=told.append)
        assert told == [GONE, GONE, GONE]
        with pytest.raises(NotCoordinatorError):
            await ended.durable_within(10)
        await ended.settled()
        await other.durable_within(60)
        assert desk.store.commits == [["/other"]]

    story(body, shards=2)


def test_what_ends_is_not_waited_for_by_what_follows():
    async def body(desk, ended, other):
        loop = asyncio.get_running_loop()
        desk.store.failures = 8
        ended.write(put("/a"))
        await asyncio.sleep(30)
        desk.store.failures = 0
        ended.end(GONE)
        desk.writer.try_again()
        began = loop.time()
        other.write(put("/b"))
        await other.durable_within(10)
        assert loop.time() - began < 1.5
        assert desk.store.commits == [["/b"]]

    story(body, shards=2)


def test_a_wait_begins_with_the_call_and_not_when_it_is_awaited():
    async def body(_desk, tenure):
        tenure.write(put("/a"))
        waiting = tenure.durable_within(10)
        await asyncio.sleep(2)
        tenure.end(GONE)
        await waiting

    story(body)
