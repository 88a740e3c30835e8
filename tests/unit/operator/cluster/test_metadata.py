"""Tests of the metadata registry: open once, reopen for changed settings, close."""

import asyncio

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster.id_allocator import cluster_id
from kafscale.metadata.topics.store import TopicStore
from kafscale.operator.cluster.metadata import MetadataRegistry

SETTINGS = Etcd(endpoints=("here:2379",))
OTHER = Etcd(endpoints=("there:2379",))


class FakeStoreOpener:
    """Opens stores in memory, and remembers them by their settings."""

    def __init__(self):
        self.opened = []
        self.broken = None

    def __call__(self, settings):
        store = self.broken or MemoryStore(virtual_time.clock_ms)
        self.opened.append((settings, store))
        return store


def run_test(body):
    async def scenario(_random):
        opener = FakeStoreOpener()
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


def test_metadata_is_opened_once_and_kept_current():
    async def body(registry, opener):
        assert registry.get("default", "production") is None
        metadata = await registry.open("default", "production", SETTINGS, "objects")
        assert await registry.open("default", "production", SETTINGS, "objects") is metadata
        assert registry.get("default", "production") is metadata
        assert registry.get("other", "production") is None
        ((_, store),) = opener.opened
        assert await metadata.cluster_id() == ""
        await cluster_id(store, "an id")
        assert await metadata.cluster_id() == "an id"
        broker = TopicStore(store)
        await broker.start()
        await broker.create("orders", 2, {}, 1, bytes(16))
        created = await metadata.topic_store.create("payments", 1, {}, 1, bytes(range(16)))
        await broker.close()
        assert metadata.is_connected
        assert metadata.view.brokers == {}
        return sorted(metadata.topic_store.topics), created.namespace

    assert run_test(body) == (["orders", "payments"], "objects")


def test_changed_settings_reopen_metadata_and_close_the_former():
    async def body(registry, opener):
        first = await registry.open("default", "production", SETTINGS, "objects")
        second = await registry.open("default", "production", OTHER, "objects")
        assert first is not second
        assert registry.get("default", "production") is second
        await asyncio.sleep(1)
        closed = [await is_closed(store) for _, store in opener.opened]
        with pytest.raises(StoreUnavailableError):
            await first.topic_store.delete("orders")
        return closed

    assert run_test(body) == [True, False]


def test_unavailable_etcd_leaves_metadata_open():
    async def body(registry, opener):
        first = await registry.open("default", "production", SETTINGS, "objects")
        opener.broken = MemoryStore(virtual_time.clock_ms)
        await opener.broken.close()
        with pytest.raises(StoreUnavailableError):
            await registry.open("default", "production", OTHER, "objects")
        assert not await is_closed(opener.opened[0][1])
        return registry.get("default", "production") is first

    assert run_test(body)


def test_closing_one_cluster_keeps_the_others():
    async def body(registry, opener):
        await registry.open("default", "production", SETTINGS, "objects")
        await registry.open("default", "staging", SETTINGS, "objects")
        await registry.close("default", "production")
        await registry.close("default", "production")
        open_metadata = registry.get("default", "production"), registry.get("default", "staging")
        return open_metadata, [await is_closed(store) for _, store in opener.opened]

    (production, staging), closed = run_test(body)
    assert production is None
    assert staging is not None
    assert closed == [True, False]


def test_cluster_is_found_by_its_id():
    async def body(registry, opener):
        assert registry.only() is None
        red = await registry.open("default", "red", SETTINGS, "objects")
        assert registry.only() is red
        blue = await registry.open("default", "blue", OTHER, "objects")
        assert registry.only() is None
        assert await registry.find("blue") is None
        for (_, store), name in zip(opener.opened, ("red", "blue"), strict=True):
            await cluster_id(store, name)
        return await registry.find("blue") is blue, await registry.find("green")

    assert run_test(body) == (True, None)


def test_listeners_are_called_on_close():
    async def body(registry, _opener):
        metadata = await registry.open("default", "red", SETTINGS, "objects")
        previous = []
        metadata.on_close(lambda: previous.append(metadata.is_connected))
        await registry.close("default", "red")
        await metadata.close()
        return previous

    assert run_test(body) == [True]
