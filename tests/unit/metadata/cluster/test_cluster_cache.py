import asyncio

from msgspec.structs import replace

from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment, encode_broker
from kafscale.metadata.schema.model import NO_BROKER, Assignment, BrokerInfo
from kafscale.metadata.store.base import Delete, Put

BROKER = BrokerInfo(id=1, epoch=4, host="a", port=9092, rack="z")
OWNED = Assignment(
    topic="orders", partition=2, broker_id=1, broker_epoch=4, leader_epoch=7, fully_rolled=True
)


def put_broker(broker):
    return Put(keys.broker(broker.id), encode_broker(broker, 0))


def put_assignment(assignment):
    key = keys.assignment(assignment.topic, assignment.partition)
    return Put(key, encode_assignment(assignment))


async def shown(cache, condition):
    changed = asyncio.Event()
    cache.subscribe(changed.set)
    while not condition():
        changed.clear()
        await changed.wait()


def with_view(run_with_store, body):
    async def whole(store):
        cache = ClusterCache(store)
        await cache.start()
        await body(store, cache)
        await cache.close()

    run_with_store(whole)


def test_cache_shows_existing_records(run_with_store):
    async def body(store):
        await store.commit(
            [], [put_broker(BROKER), put_assignment(OWNED), Put(keys.CONTROLLER, b"1")]
        )
        cache = ClusterCache(store)
        await cache.start()
        assert cache.brokers[1].rack == "z"
        assert cache.controller_id == 1
        assert cache.leader("orders", 2) == (1, 7)
        assert cache.leader("orders", 0) == (NO_BROKER, -1)
        assert cache.assigned_topics() == ["orders"]
        await cache.close()

    run_with_store(body)


def test_owner_of_an_earlier_registration_is_no_leader(run_with_store):
    async def body(store, cache):
        await store.commit([], [put_broker(BROKER), put_assignment(OWNED)])
        await shown(cache, lambda: cache.leader("orders", 2) == (1, 7))
        await store.commit([], [put_broker(replace(BROKER, epoch=5))])
        await shown(cache, lambda: cache.leader("orders", 2) == (NO_BROKER, 7))
        await store.commit([], [Delete(keys.broker(1))])
        await shown(cache, lambda: not cache.brokers)
        assert cache.leader("orders", 2) == (NO_BROKER, 7)

    with_view(run_with_store, body)


def test_listeners_are_called_after_the_cache_changed(run_with_store):
    async def body(store, cache):
        seen = []
        cache.subscribe(lambda: seen.append((dict(cache.brokers), cache.controller_id)))
        assert cache.controller_id == NO_BROKER
        await store.commit([], [Put(keys.CONTROLLER, b"1")])
        await shown(cache, lambda: cache.controller_id == 1)
        assert seen[-1] == ({}, 1)

    with_view(run_with_store, body)


def test_heartbeat_of_a_broker_is_shown_without_a_notification(run_with_store):
    async def body(store, cache):
        await store.commit([], [put_broker(BROKER)])
        await shown(cache, lambda: 1 in cache.brokers)
        calls = []
        cache.subscribe(lambda: calls.append(dict(cache.brokers)))
        beat = Put(keys.broker(1), encode_broker(BROKER, now_ms=30_000))
        revision = (await store.commit([], [beat])).revision
        await store.commit([], [put_broker(replace(BROKER, is_draining=True))])
        await shown(cache, lambda: cache.brokers[1].is_draining)
        assert [brokers[1].is_draining for brokers in calls] == [True]
        assert cache.brokers[1].mod_revision == revision + 1

    with_view(run_with_store, body)


def test_damaged_record_is_absent(run_with_store):
    async def body(store, cache):
        await store.commit([], [put_assignment(OWNED), put_broker(BROKER)])
        await shown(cache, lambda: cache.leader("orders", 2) == (1, 7))
        await store.commit([], [Put(keys.assignment("orders", 2), b"\xff\xff")])
        await shown(cache, lambda: cache.leader("orders", 2) == (NO_BROKER, -1))
        assert cache.assigned_topics() == []

    with_view(run_with_store, body)
