"""Whether the metadata store is still the one that a process has known."""

import asyncio

import pytest

from kafscale.broker.cluster.restore_guard import Lineage
from kafscale.errors import FencedError
from kafscale.metadata.cluster.restore_marker import (
    REVISION_LEAP,
    find_restored,
    mark_restored,
    settle,
)
from kafscale.metadata.store.base import Put
from kafscale.metadata.store.memory import MemoryStore
from kafscale.testing import virtual_time
from unit.broker.cluster.backups import BackedUpStore


def simulate(body, store=None):
    async def scenario(_random):
        await body(store or MemoryStore(virtual_time.clock_ms))

    virtual_time.run(scenario, seed=0)


async def mark(store):
    await mark_restored(store, snapshot="a.db", taken_at_ms=0, restored_at_ms=0)


def test_a_store_that_nobody_restores_is_always_right():
    async def body(store):
        lineage = Lineage(store)
        assert not lineage.is_settled, "nobody has looked yet"
        for number in range(3):
            await lineage.check()
            assert lineage.is_settled
            await store.commit([], [Put("/kafscale/cluster/id", b"%d" % number)])

    simulate(body)


def test_a_restoration_from_before_is_waited_for():
    async def body(store):
        await mark(store)
        lineage = Lineage(store)
        waiting = asyncio.create_task(lineage.settled())
        for _ in range(2):
            await lineage.check()
            await asyncio.sleep(1)
            assert not waiting.done()
        await settle(store, await find_restored(store))
        await lineage.check()
        await asyncio.wait_for(waiting, 1)

    simulate(body)


def test_a_restoration_meanwhile_ends_the_process():
    async def body(store):
        lineage = Lineage(store)
        await lineage.check()
        await mark(store)
        for _ in range(2):
            with pytest.raises(FencedError, match="restored from a snapshot"):
                await lineage.check()

    simulate(body)


def test_another_restoration_while_one_is_not_settled_ends_the_process_too():
    async def body(store):
        await mark(store)
        lineage = Lineage(store)
        await lineage.check()
        await mark(store)
        with pytest.raises(FencedError):
            await lineage.check()

    simulate(body)


def test_a_leap_of_the_revision_tells_as_much_as_a_mark():
    async def body(store):
        store = BackedUpStore(virtual_time.clock_ms)
        await store.commit([], [Put("/kafscale/cluster/id", b"one")])
        restored = BackedUpStore.restored(store.backup(), REVISION_LEAP)

        class Replaced:
            """A connection to the one, and then to the other."""

            now = store

            async def range(self, prefix):
                return await self.now.range(prefix)

        connection = Replaced()
        lineage = Lineage(connection)
        await lineage.check()
        connection.now = restored
        with pytest.raises(FencedError):
            await lineage.check()
        late = Lineage(restored)
        await late.check()
        assert not late.is_settled

    simulate(body)
