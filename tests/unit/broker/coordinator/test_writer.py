"""The group writer: shared transactions, in order, however often the store fails."""

import asyncio
from functools import partial
from random import Random

import pytest

from kafscale.broker.coordinator.clock import GroupClock
from kafscale.broker.coordinator.writer import GroupWriter
from kafscale.errors import CoordinatorUnavailableError, StoreUnavailableError
from kafscale.metadata.memory import MemoryStore
from kafscale.metadata.store import COMMIT_BYTES_MAX, OPERATIONS_MAX, Delete, Put
from kafscale.testing import virtual_time


class SlowStore(MemoryStore):
    """Takes a second for a commit, keeps what was committed, and fails as often as it is told."""

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms)
        self.commits: list[list[str]] = []
        self.failures = 0

    async def commit(self, compares, operations):
        await asyncio.sleep(1)
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("not now")
        self.commits.append([operation.key for operation in operations])
        return await super().commit(compares, operations)


def put(key, value=b"1"):
    return {key: lambda: Put(key, value)}


def story(body, linger_ms=5):
    async def scenario(_random):
        store = SlowStore()
        clock = GroupClock(virtual_time.clock_ms, virtual_time.clock_ms)
        writer = GroupWriter(store, clock, linger_ms=linger_ms, random=Random(0))
        running = asyncio.create_task(writer.run())
        try:
            await body(store, writer)
        finally:
            running.cancel()
            await asyncio.wait([running])

    virtual_time.run(scenario, seed=0)


def test_what_comes_together_goes_together():
    async def body(store, writer):
        for key in ("/a", "/b"):
            writer.write(put(key))
        await asyncio.sleep(0.003)
        writer.write(put("/c"))
        await writer.durable_within(10)
        assert store.commits == [["/a", "/b", "/c"]]
        assert writer.transactions == 1

    story(body)


def test_what_comes_while_the_store_is_busy_goes_in_the_next_transaction():
    async def body(store, writer):
        writer.write(put("/a"))
        await asyncio.sleep(0.5)
        writer.write(put("/b", b"old"))
        writer.write(put("/c"))
        writer.write(put("/b", b"new"))
        await writer.durable_within(10)
        assert store.commits == [["/a"], ["/b", "/c"]]
        assert (await store.get("/b")).value == b"new"

    story(body)


def test_a_value_is_made_when_it_leaves():
    async def body(store, writer):
        value = [b"as asked"]
        writer.write({"/a": lambda: Put("/a", value[0])})
        value[0] = b"as it left"
        await writer.durable_within(10)
        assert (await store.get("/a")).value == b"as it left"

    story(body)


def test_everybody_is_called_in_order_once_what_they_asked_for_is_durable():
    async def body(_store, writer):
        called = []
        writer.when_durable(partial(called.append, "nothing to wait for"))
        assert called == ["nothing to wait for"]
        writer.write(put("/a"))
        writer.when_durable(partial(called.append, "a"))
        await asyncio.sleep(0.5)
        writer.when_durable(partial(called.append, "a, on its way"))
        writer.write(put("/b"))
        writer.when_durable(partial(called.append, "b"))
        assert called == ["nothing to wait for"]
        await asyncio.sleep(0.6)
        assert called[1:] == ["a", "a, on its way"]
        await asyncio.sleep(1)
        assert called[3:] == ["b"]

    story(body)


def test_a_store_that_fails_is_asked_again_and_nothing_is_skipped():
    async def body(store, writer):
        store.failures = 3
        writer.write(put("/a"))
        await asyncio.sleep(1.5)
        writer.write(put("/b"))
        await writer.durable_within(60)
        assert store.commits == [["/a"], ["/b"]]

    story(body)


def test_who_cannot_wait_is_told_to_try_again_and_the_write_is_made_all_the_same():
    async def body(store, writer):
        store.failures = 5
        writer.write(put("/a"))
        with pytest.raises(CoordinatorUnavailableError):
            await writer.durable_within(2)
        await writer.durable_within(60)
        assert store.commits == [["/a"]]

    story(body)


def test_many_operations_are_split_as_the_store_wants_it():
    async def body(store, writer):
        keys = [f"/{number}" for number in range(2 * OPERATIONS_MAX + 1)]
        for key in keys:
            writer.write(put(key))
        await writer.durable_within(60)
        assert [len(commit) for commit in store.commits] == [OPERATIONS_MAX, OPERATIONS_MAX, 1]
        assert [key for commit in store.commits for key in commit] == keys

    story(body)


def test_large_values_are_split_and_one_that_can_never_fit_does_not_stop_the_others():
    async def body(store, writer):
        half = bytes(COMMIT_BYTES_MAX // 2)
        for key in ("/a", "/b", "/c"):
            writer.write(put(key, half))
        writer.write(put("/huge", bytes(COMMIT_BYTES_MAX)))
        await writer.durable_within(60)
        assert store.commits == [["/a"], ["/b"], ["/c"]]

    story(body)


def test_a_deletion_takes_the_place_of_a_value_that_waits():
    async def body(store, writer):
        writer.write(put("/a"))
        writer.write({"/a": lambda: Delete("/a")})
        await writer.durable_within(10)
        assert store.commits == [["/a"]]
        assert await store.get("/a") is None

    story(body)


def test_the_end_waits_for_nobody_else_to_come():
    async def body(store, writer):
        began = asyncio.get_running_loop().time()
        writer.write(put("/a"))
        await asyncio.sleep(0)
        await writer.finish(10)
        assert store.commits == [["/a"]]
        assert asyncio.get_running_loop().time() - began < 2

    story(body, linger_ms=5_000)
