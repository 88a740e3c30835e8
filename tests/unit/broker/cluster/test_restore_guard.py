"""The guard detects that the metadata store was restored."""

import asyncio

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.cluster.restore_guard import RestoreGuard
from kafscale.errors import FencedError
from kafscale.metadata.cluster.restore_marker import (
    REVISION_BUMP,
    complete_restore,
    find_pending_restore,
    mark_restored,
)
from kafscale.metadata.store.base import Put
from unit.broker.cluster.restorable_cluster import BackedUpStore


def simulate(body, store=None):
    async def scenario(_random):
        await body(store or MemoryStore(virtual_time.clock_ms))

    virtual_time.run(scenario, seed=0)


async def mark(store):
    await mark_restored(store, snapshot="a.db", taken_at_ms=0, restored_at_ms=0)


def test_guard_accepts_a_store_that_was_not_restored():
    async def body(store):
        restore_guard = RestoreGuard(store)
        assert not restore_guard.is_restore_complete, "not checked yet"
        for number in range(3):
            await restore_guard.check()
            assert restore_guard.is_restore_complete
            await store.commit([], [Put("/kafscale/cluster/id", b"%d" % number)])

    simulate(body)


def test_guard_waits_for_a_restore_that_was_pending_at_start():
    async def body(store):
        await mark(store)
        restore_guard = RestoreGuard(store)
        waiting = asyncio.create_task(restore_guard.wait_for_restore())
        for _ in range(2):
            await restore_guard.check()
            await asyncio.sleep(1)
            assert not waiting.done()
        await complete_restore(store, await find_pending_restore(store))
        await restore_guard.check()
        await asyncio.wait_for(waiting, 1)

    simulate(body)


def test_guard_raises_if_the_store_was_restored_while_running():
    async def body(store):
        restore_guard = RestoreGuard(store)
        await restore_guard.check()
        await mark(store)
        for _ in range(2):
            with pytest.raises(FencedError, match="restored from a snapshot"):
                await restore_guard.check()

    simulate(body)


def test_guard_raises_on_a_second_restore_while_one_is_pending():
    async def body(store):
        await mark(store)
        restore_guard = RestoreGuard(store)
        await restore_guard.check()
        await mark(store)
        with pytest.raises(FencedError):
            await restore_guard.check()

    simulate(body)


def test_guard_detects_a_revision_leap_without_a_marker():
    async def body(store):
        store = BackedUpStore(virtual_time.clock_ms)
        await store.commit([], [Put("/kafscale/cluster/id", b"one")])
        restored = BackedUpStore.restored(store.backup(), REVISION_BUMP)

        class Replaced:
            """A connection to one store, and then to the other."""

            now = store

            async def range(self, prefix):
                return await self.now.range(prefix)

        connection = Replaced()
        restore_guard = RestoreGuard(connection)
        await restore_guard.check()
        connection.now = restored
        with pytest.raises(FencedError):
            await restore_guard.check()
        late = RestoreGuard(restored)
        await late.check()
        assert not late.is_restore_complete

    simulate(body)
