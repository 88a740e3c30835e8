"""The metadata of clusters is opened once, kept, opened anew for other settings, and closed."""

import asyncio

import pytest

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster.id_allocator import cluster_id
from kafscale.metadata.store.memory import MemoryStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.operator.cluster.metadata import MetadataRegistry
from kafscale.testing import virtual_time

HERE = Etcd(endpoints=("here:2379",))
THERE = Etcd(endpoints=("there:2379",))


class Opener:
    """Opens stores in memory, and remembers them by their settings."""

    def __init__(self):
        self.opened = []
        self.broken = None

    def __call__(self, settings):
        store = self.broken or MemoryStore(virtual_time.clock_ms)
        self.opened.append((settings, store))
        return store


def play(body):
    async def scenario(_random):
        opener = Opener()
        registry = MetadataRegistry(opener)
        try:
            return await body(registry, opener)
        finally:
            await registry.close_all()

    return virtual_time.run(scenario, seed=0)


async def is_closed(store):
    try:
        await store.get("/")
    except StoreUnavailableError:
        return True
    return False


def test_a_cluster_is_opened_once_and_seen_as_it_changes():
    async def body(registry, opener):
        assert registry.get("default", "production") is None
        metadata = await registry.open("default", "production", HERE, "objects")
        assert await registry.open("default", "production", HERE, "objects") is metadata
        assert registry.get("default", "production") is metadata
        assert registry.get("other", "production") is None
        ((_, store),) = opener.opened
        assert await metadata.cluster_id() == ""
        await cluster_id(store, "an id")
        assert await metadata.cluster_id() == "an id"
        broker = Catalog(store)
        await broker.start()
        await broker.create("orders", 2, {}, 1, bytes(16))
        made = await metadata.catalog.create("payments", 1, {}, 1, bytes(range(16)))
        await broker.close()
        assert metadata.is_connected
        assert metadata.brokers == {}
        return sorted(metadata.topics), made.namespace

    assert play(body) == (["orders", "payments"], "objects")


def test_other_settings_open_it_anew_and_the_former_is_closed():
    async def body(registry, opener):
        first = await registry.open("default", "production", HERE, "objects")
        second = await registry.open("default", "production", THERE, "objects")
        assert first is not second
        assert registry.get("default", "production") is second
        await asyncio.sleep(1)
        closed = [await is_closed(store) for _, store in opener.opened]
        with pytest.raises(StoreUnavailableError):
            await first.catalog.delete("orders")
        return closed

    assert play(body) == [True, False]


def test_an_etcd_that_does_not_answer_leaves_what_was_open():
    async def body(registry, opener):
        first = await registry.open("default", "production", HERE, "objects")
        opener.broken = MemoryStore(virtual_time.clock_ms)
        await opener.broken.close()
        with pytest.raises(StoreUnavailableError):
            await registry.open("default", "production", THERE, "objects")
        assert not await is_closed(opener.opened[0][1])
        return registry.get("default", "production") is first

    assert play(body)


def test_a_cluster_that_goes_is_closed_and_the_others_stay():
    async def body(registry, opener):
        await registry.open("default", "production", HERE, "objects")
        await registry.open("default", "staging", HERE, "objects")
        await registry.close("default", "production")
        await registry.close("default", "production")
        found = registry.get("default", "production"), registry.get("default", "staging")
        return found, [await is_closed(store) for _, store in opener.opened]

    (production, staging), closed = play(body)
    assert production is None
    assert staging is not None
    assert closed == [True, False]


def test_a_cluster_is_found_by_the_id_that_brokers_gave_it():
    async def body(registry, opener):
        assert registry.only() is None
        red = await registry.open("default", "red", HERE, "objects")
        assert registry.only() is red
        blue = await registry.open("default", "blue", THERE, "objects")
        assert registry.only() is None
        assert await registry.find("blue") is None
        for (_, store), name in zip(opener.opened, ("red", "blue"), strict=True):
            await cluster_id(store, name)
        return await registry.find("blue") is blue, await registry.find("green")

    assert play(body) == (True, None)


def test_who_wants_to_know_is_told_when_it_is_closed():
    async def body(registry, _opener):
        metadata = await registry.open("default", "red", HERE, "objects")
        told = []
        metadata.when_closed(lambda: told.append(metadata.is_connected))
        await registry.close("default", "red")
        await metadata.close()
        return told

    assert play(body) == [True]
