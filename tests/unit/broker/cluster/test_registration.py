import asyncio

import pytest

from kafscale.broker.cluster.registration import Membership
from kafscale.errors import FencedError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_broker
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.store.memory import MemoryStore
from kafscale.testing import virtual_time
from unit.broker.cluster.away import AwayStore

TTL_MS = 10_000
BROKER = BrokerInfo(id=3, epoch=0, host="a", port=9092, rack="z")


def membership(store):
    clock = virtual_time.clock_ms
    return Membership(store, BROKER, ttl_ms=TTL_MS, clock=clock, steady=clock)


def simulate(body):
    async def scenario(_random):
        await body(AwayStore(MemoryStore(virtual_time.clock_ms)))

    virtual_time.run(scenario, seed=0)


async def registered(store):
    entry = await store.get(keys.broker("3"))
    return None if entry is None else decode_broker(entry)


def test_who_joins_is_registered_and_proven():
    async def body(store):
        ours = membership(store)
        assert not ours.is_proven
        joined = await ours.join(7)
        assert ours.is_proven
        assert await registered(store) == joined == ours.registration
        assert (joined.epoch, joined.rack) == (7, "z")

    simulate(body)


def test_a_lease_that_is_kept_lasts():
    async def body(store):
        ours = membership(store)
        await ours.join(0)
        keeping = asyncio.create_task(ours.keep())
        for _ in range(100):
            await asyncio.sleep(1)
            assert ours.is_proven
        keeping.cancel()
        assert await registered(store) is not None

    simulate(body)


def test_who_cannot_ask_stops_before_the_lease_can_have_ended():
    async def body(store):
        ours = membership(store)
        await ours.join(0)
        keeping = asyncio.create_task(ours.keep())
        await asyncio.sleep(30)
        store.broken = True
        while ours.is_proven:  # noqa: ASYNC110 - the clock alone decides.
            await asyncio.sleep(0.01)
        store.broken = False
        assert await registered(store) is not None, "the lease is still there"
        # Nobody has taken it away meanwhile, so that this life goes on.
        await asyncio.sleep(1)
        assert ours.is_proven
        assert not keeping.done()
        keeping.cancel()

    simulate(body)


def test_a_lease_that_has_ended_ends_the_life():
    async def body(store):
        ours = membership(store)
        await ours.join(0)
        keeping = asyncio.create_task(ours.keep())
        store.broken = True
        await asyncio.sleep(TTL_MS / 1000 * 2)
        assert not ours.is_proven
        assert not keeping.done()
        store.broken = False
        await asyncio.wait_for(keeping, 5)
        assert not ours.is_proven
        await ours.check_alone()
        await ours.leave()
        assert (await ours.join(1)).epoch == 1

    simulate(body)


def test_a_newcomer_of_the_same_id_replaces_and_is_noticed():
    async def body(store):
        older, newer = membership(store), membership(store)
        await older.join(0)
        await newer.join(1)
        assert (await registered(store)).epoch == 1
        with pytest.raises(FencedError, match="another process runs as broker 3"):
            await older.check_alone()
        await newer.check_alone()
        await older.leave()
        assert (await registered(store)).epoch == 1, "only the older one's own lease is given back"
        with pytest.raises(FencedError, match="a later broker"):
            await older.join(1)

    simulate(body)


def test_who_drains_says_so():
    async def body(store):
        ours = membership(store)
        await ours.join(0)
        await ours.announce_drain()
        assert (await registered(store)).is_draining
        assert ours.registration == await registered(store)

    simulate(body)


def test_who_leaves_is_gone_at_once():
    async def body(store):
        ours = membership(store)
        await ours.join(0)
        await ours.leave()
        assert await registered(store) is None
        assert not ours.is_proven
        await ours.leave()

    simulate(body)


def test_who_leaves_does_not_wait_for_a_store_that_is_away():
    async def body(store):
        ours = membership(store)
        await ours.join(0)
        store.broken = True
        async with asyncio.timeout(TTL_MS / 1000):
            await ours.leave()
        assert not ours.is_proven

    simulate(body)
