import asyncio

import pytest
from msgspec.structs import replace

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.cluster.registration import Registration, RestoreGuard
from kafscale.errors import FencedError
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.cluster.restore_marker import (
    REVISION_BUMP,
    complete_restore,
    find_pending_restore,
    mark_restored,
)
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_broker, encode_broker
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.schema.protobuf import parse_time
from kafscale.metadata.store.base import Delete, Put
from unit.broker.cluster.restorable_cluster import BackedUpStore
from unit.broker.cluster.unreachable_store import UnreachableStore

TTL_MS = 10_000
BROKER = BrokerInfo(id=3, epoch=0, host="a", port=9092, rack="z")


def registration(store, location="here"):
    clock = virtual_time.clock_ms
    broker = replace(BROKER, location=location)
    return Registration(store, broker, ttl_ms=TTL_MS, clock=clock, monotonic=clock)


def simulate(body):
    async def scenario(_random):
        await body(UnreachableStore(MemoryStore(virtual_time.clock_ms)))

    virtual_time.run(scenario, seed=0)


async def registered(store):
    entry = await store.get(keys.broker(3))
    return None if entry is None else decode_broker(entry)


def test_register_writes_the_key_and_makes_the_lease_valid():
    async def body(store):
        current = registration(store)
        assert not current.lease_is_valid
        joined = await current.register(7)
        assert current.lease_is_valid
        assert await registered(store) == joined == current.broker
        assert (joined.epoch, joined.rack) == (7, "z")

    simulate(body)


def test_renewed_lease_stays_valid():
    async def body(store):
        current = registration(store)
        await current.register(0)
        keeping = asyncio.create_task(current.keep_alive_until_lost())
        for _ in range(100):
            await asyncio.sleep(1)
            assert current.lease_is_valid
        keeping.cancel()
        assert await registered(store) is not None

    simulate(body)


def test_lease_is_invalid_before_it_can_have_expired_in_an_unreachable_store():
    async def body(store):
        current = registration(store)
        await current.register(0)
        keeping = asyncio.create_task(current.keep_alive_until_lost())
        await asyncio.sleep(30)
        store.broken = True
        while current.lease_is_valid:  # noqa: ASYNC110 - the clock alone decides.
            await asyncio.sleep(0.01)
        store.broken = False
        assert await registered(store) is not None, "the lease is still there"
        # No other broker has taken over meanwhile, so the session continues.
        await asyncio.sleep(1)
        assert current.lease_is_valid
        assert not keeping.done()
        keeping.cancel()

    simulate(body)


async def heartbeat_ms(store):
    """When the last heartbeat of the registered broker was, as readers of the schema see it."""
    entry = await store.get(keys.broker(3))
    record = messages.BrokerRegistration.FromString(entry.value)
    return parse_time(record.last_heartbeat)


def test_heartbeats_are_published_at_a_limited_rate():
    async def body(store):
        current = registration(store)
        first = await current.register(0)
        keeping = asyncio.create_task(current.keep_alive_until_lost())
        await asyncio.sleep(300)
        assert virtual_time.clock_ms() - await heartbeat_ms(store) <= 35_000
        writes = (await registered(store)).mod_revision - first.mod_revision
        assert 8 <= writes <= 10
        assert current.broker == await registered(store)
        await current.announce_drain()
        await asyncio.sleep(60)
        assert (await registered(store)).is_draining, "a heartbeat keeps what was announced"
        keeping.cancel()

    simulate(body)


def test_heartbeat_whose_response_is_lost_does_not_end_the_session():
    async def body(store):
        current = registration(store)
        before = await current.register(0)
        value = (await store.get(keys.broker(3))).value
        await store.commit([], [Put(keys.broker(3), value, before.lease)])
        await current.announce_drain()
        assert (await registered(store)).is_draining
        await store.commit([], [Delete(keys.broker(3))])
        with pytest.raises(FencedError, match="no longer registered"):
            await current.announce_drain()
        await current.deregister()
        with pytest.raises(FencedError, match="no longer registered"):
            await current.announce_drain()

    simulate(body)


def test_expired_lease_ends_the_session():
    async def body(store):
        current = registration(store)
        await current.register(0)
        keeping = asyncio.create_task(current.keep_alive_until_lost())
        store.broken = True
        await asyncio.sleep(TTL_MS / 1000 * 2)
        assert not current.lease_is_valid
        assert not keeping.done()
        store.broken = False
        await asyncio.wait_for(keeping, 5)
        assert not current.lease_is_valid
        await current.check_not_superseded()
        await current.deregister()
        assert (await current.register(1)).epoch == 1

    simulate(body)


def test_restarted_process_supersedes_the_one_that_listened_there():
    async def body(store):
        older, newer = registration(store), registration(store)
        await older.register(0)
        await asyncio.wait_for(newer.wait_until_free(), 0.1)
        await newer.register(1)
        assert (await registered(store)).epoch == 1
        with pytest.raises(FencedError, match="another process is registered as broker 3"):
            await older.check_not_superseded()
        await newer.check_not_superseded()
        await older.deregister()
        assert (await registered(store)).epoch == 1, "only the older one's own lease is revoked"
        with pytest.raises(FencedError, match="registered with a later epoch"):
            await older.register(1)

    simulate(body)


def test_process_elsewhere_is_refused_the_id_of_a_living_broker():
    async def body(store):
        living, other = registration(store), registration(store, location="elsewhere")
        await living.register(0)
        keeping = asyncio.create_task(living.keep_alive_until_lost())
        with pytest.raises(
            FencedError, match=r"broker id 3 is in use: .* runs at a:9092; give each"
        ):
            await other.wait_until_free()
        with pytest.raises(FencedError, match="broker id 3 is in use"):
            await other.register(1)
        assert (await registered(store)).epoch == 0
        await living.check_not_superseded()
        keeping.cancel()

    simulate(body)


def test_process_elsewhere_gets_the_id_when_the_lease_of_a_killed_broker_ends():
    async def body(store):
        killed, other = registration(store), registration(store, location="elsewhere")
        await killed.register(0)
        began_ms = virtual_time.clock_ms()
        await other.wait_until_free()
        assert TTL_MS * 0.9 < virtual_time.clock_ms() - began_ms < TTL_MS * 1.2
        assert (await other.register(1)).location == "elsewhere"

    simulate(body)


def test_registration_without_a_lease_is_replaced_at_once():
    """As after a restore by copying all keys: no lease would ever end it."""

    async def body(store):
        other = registration(store, location="elsewhere")
        copied = encode_broker(replace(BROKER, epoch=0, location="there"), 0)
        await store.commit([], [Put(keys.broker(3), copied)])
        await asyncio.wait_for(other.wait_until_free(), 0.1)
        assert (await other.register(1)).location == "elsewhere"

    simulate(body)


def test_announce_drain_marks_the_registration():
    async def body(store):
        current = registration(store)
        await current.register(0)
        await current.announce_drain()
        assert (await registered(store)).is_draining
        assert current.broker == await registered(store)

    simulate(body)


def test_deregister_removes_the_key_at_once():
    async def body(store):
        current = registration(store)
        await current.register(0)
        await current.deregister()
        assert await registered(store) is None
        assert not current.lease_is_valid
        await current.deregister()

    simulate(body)


def test_deregister_does_not_wait_for_an_unreachable_store():
    async def body(store):
        current = registration(store)
        await current.register(0)
        store.broken = True
        async with asyncio.timeout(TTL_MS / 1000):
            await current.deregister()
        assert not current.lease_is_valid

    simulate(body)


def guard_store(body, store=None):
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

    guard_store(body)


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

    guard_store(body)


def test_guard_raises_if_the_store_was_restored_while_running():
    async def body(store):
        restore_guard = RestoreGuard(store)
        await restore_guard.check()
        await mark(store)
        for _ in range(2):
            with pytest.raises(FencedError, match="restored from a snapshot"):
                await restore_guard.check()

    guard_store(body)


def test_guard_raises_on_a_second_restore_while_one_is_pending():
    async def body(store):
        await mark(store)
        restore_guard = RestoreGuard(store)
        await restore_guard.check()
        await mark(store)
        with pytest.raises(FencedError):
            await restore_guard.check()

    guard_store(body)


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

    guard_store(body)
