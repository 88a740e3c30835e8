"""The metadata snapshot as its readers see it."""

import asyncio
import json

import pytest

from doubles.memory_store import MemoryStore
from kafscale.broker.cluster.controller.metadata_snapshot import (
    PART_BYTES_MAX,
    SnapshotPublisher,
    encode,
)
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.store.base import Put
from unit.broker.cluster.controller_cluster import CLUSTER_ID, simulate


async def stored(cluster):
    entry = await cluster.store.get(keys.SNAPSHOT)
    return json.loads(entry.value)


def document(topics, partitions, name="topic-{}"):
    return {
        "controller_id": 1,
        "cluster_id": "c",
        "brokers": [{"id": 1, "host": "host", "port": 9092, "rack": ""}],
        "topics": [
            {
                "name": name.format(number),
                "topic_id": "00" * 16,
                "partition_count": partitions,
                "partitions": [
                    {"id": each, "leader": 100, "leader_epoch": 12} for each in range(partitions)
                ],
            }
            for number in range(topics)
        ],
    }


def test_snapshot_has_brokers_topics_and_leaders():
    async def body(cluster):
        await cluster.node(1, rack="a")
        await cluster.topic("orders", 2)
        await cluster.wait_until_assigned()
        await asyncio.sleep(2)
        assert await stored(cluster) == {
            "controller_id": 1,
            "cluster_id": CLUSTER_ID,
            "brokers": [{"id": 1, "host": "host", "port": 9092, "rack": "a"}],
            "topics": [
                {
                    "name": "orders",
                    "topic_id": "00000000000000000000000000000001",
                    "partition_count": 2,
                    "partitions": [
                        {"id": 0, "leader": 1, "leader_epoch": 0},
                        {"id": 1, "leader": 1, "leader_epoch": 0},
                    ],
                }
            ],
        }

    simulate(body)


def test_snapshot_is_updated_at_a_limited_rate():
    async def body(cluster):
        await cluster.node(1)
        await cluster.wait_until_assigned()
        await asyncio.sleep(3)
        before = (await cluster.store.get(keys.SNAPSHOT)).mod_revision
        await cluster.nodes[1].drain()
        await asyncio.sleep(2)
        assert (await cluster.store.get(keys.SNAPSHOT)).mod_revision == before, (
            "nothing has changed"
        )
        written = cluster.nodes[1].store.commits
        written.clear()
        for number in range(40):
            await cluster.topic(f"topic-{number}", 1)
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        puts = [
            operation
            for _, operations, done in written
            for operation in operations
            if operation.key == keys.SNAPSHOT and done.succeeded
        ]
        assert 3 <= len(puts) <= 6
        assert len((await stored(cluster))["topics"]) == 40

    simulate(body)


def test_next_controller_updates_the_snapshot():
    async def body(cluster):
        first = await cluster.node(1)
        await cluster.node(2)
        await asyncio.sleep(2)
        assert (await stored(cluster))["controller_id"] == 1
        await first.leave()
        await asyncio.sleep(2)
        result = await stored(cluster)
        assert result["controller_id"] == 2
        assert [broker["id"] for broker in result["brokers"]] == [2]

    simulate(body)


def test_small_cluster_is_one_document():
    complete = document(3, 4)
    [value] = encode(complete)
    assert json.loads(value) == complete


def test_topics_of_a_large_cluster_continue_in_further_parts():
    complete = document(1000, 1)
    values = encode(complete, bytes_max=3000)
    assert max(map(len, values)) <= 3000
    first, *others = map(json.loads, values)
    assert first.pop("parts") == len(values) > 40
    assert [list(each) for each in others] == [["topics"]] * len(others)
    topics = [topic for each in (first, *others) for topic in each["topics"]]
    assert {**first, "topics": topics} == complete


@pytest.mark.parametrize(("topics", "partitions"), [(1, 10_000), (100, 100), (10_000, 1)])
def test_ten_thousand_partitions_fit_into_requests_of_etcd(topics, partitions):
    complete = document(topics, partitions, name="a-topic-with-a-name-of-usual-length-{:05}")
    values = encode(complete)
    assert max(map(len, values)) <= PART_BYTES_MAX
    decoded = [json.loads(value) for value in values]
    assert [topic for each in decoded for topic in each["topics"]] == complete["topics"]


def test_parts_that_changed_are_written_and_superfluous_ones_deleted():
    async def body():
        store = MemoryStore(lambda: 0)
        cache = ClusterCache(store)
        await cache.start()
        topics = {name: topic(name) for name in ("clicks", "orders", "users")}

        async def publish(controller_id):
            await store.commit([], [Put(keys.CONTROLLER, controller_id)])
            controller = await store.get(keys.CONTROLLER)
            publisher = SnapshotPublisher(store, cache, topics, "c", part_bytes_max=200)
            assert await publisher.publish(controller) > 0
            return controller, publisher

        controller, publisher = await publish(b"1")
        before = await stored_parts(store)
        assert list(before) == [keys.snapshot(part) for part in range(3)]
        assert [names_in(part) for part in before.values()] == [["clicks"], ["orders"], ["users"]]
        topics["users"] = topic("users", partitions=2)
        assert await publisher.publish(controller) == len((await store.get(list(before)[2])).value)
        assert await publisher.publish(controller) == 0, "nothing has changed"
        del topics["clicks"]
        await publish(b"2")
        after = await stored_parts(store)
        assert [names_in(part) for part in after.values()] == [["orders"], ["users"]]
        assert after[keys.SNAPSHOT]["parts"] == 2
        topics["late"] = topic("late")
        await publisher.publish(controller)
        assert await stored_parts(store) == after, "a former controller writes nothing"
        await cache.close()

    asyncio.run(body())


def topic(name, partitions=1):
    return Topic(name=name, id=bytes(16), partitions=partitions, configs={}, created_ms=0)


async def stored_parts(store):
    entries = (await store.range(keys.SNAPSHOT)).entries
    return {entry.key: json.loads(entry.value) for entry in entries}


def names_in(part):
    return [topic["name"] for topic in part["topics"]]
