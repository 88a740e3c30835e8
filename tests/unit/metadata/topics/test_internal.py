"""Internal topics: declared once, seen by all brokers, apart from topics."""

import asyncio

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.errors import StoreUnavailableError, TopicExistsError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import SHARD_COUNT, SHARDS_TOPIC
from kafscale.metadata.store.base import Put
from kafscale.metadata.topics.store import TopicStore


class FailingStore(MemoryStore):
    """The first commits fail."""

    failures = 0

    async def commit(self, compares, operations):
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("unavailable")
        return await super().commit(compares, operations)


def simulate(body):
    async def scenario(_random):
        store = FailingStore(virtual_time.clock_ms)
        brokers = [TopicStore(store), TopicStore(store)]
        for broker in brokers:
            await broker.start()
        try:
            await body(store, *brokers)
        finally:
            for broker in brokers:
                await broker.close()

    virtual_time.run(scenario, seed=0)


def test_topic_that_two_brokers_declare_has_one_id():
    async def body(store, first, second):
        seen = []
        first.internal.subscribe(lambda before, after: seen.append((before, after.name)))
        store.failures = 1
        await asyncio.gather(
            *(broker.internal.wait_declared(SHARDS_TOPIC, 1000) for broker in (first, second))
        )
        topic = first.find(SHARDS_TOPIC)
        assert second.find(SHARDS_TOPIC) == topic
        assert first.find_by_id(topic.id) == topic
        assert (topic.partitions, topic.created_ms) == (SHARD_COUNT, 1000)
        assert first.is_internal(SHARDS_TOPIC)
        assert seen == [(None, SHARDS_TOPIC)]
        first.internal.declare(SHARDS_TOPIC, 2000)
        await asyncio.sleep(1)
        assert first.find(SHARDS_TOPIC) == topic

    simulate(body)


def test_it_is_none_of_the_topics_of_the_cluster():
    async def body(_store, first, _second):
        await first.create("orders", 1, {}, 0, bytes(16))
        await first.internal.wait_declared(SHARDS_TOPIC, 0)
        assert set(first.topics) == {"orders"}
        assert set(first.visible) == {"orders", SHARDS_TOPIC}
        assert first.get(SHARDS_TOPIC) is None
        assert not first.is_internal("orders")
        with pytest.raises(TopicExistsError):
            first.check_new(SHARDS_TOPIC, 1)

    simulate(body)


def test_damaged_or_unknown_record_is_ignored():
    async def body(store, first, _second):
        for name in (SHARDS_TOPIC, "__something_newer"):
            await store.commit([], [Put(keys.internal_topic(name), b"\xff\xff")])
        await asyncio.sleep(0.1)
        assert not first.visible

    simulate(body)
