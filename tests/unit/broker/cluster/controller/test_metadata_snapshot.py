"""The metadata snapshot as its readers see it."""

import asyncio
import json

from kafscale.broker.cluster.controller.metadata_snapshot import encode
from kafscale.metadata.schema import keys
from unit.broker.cluster.controller_cluster import CLUSTER_ID, simulate


async def stored(cluster):
    entry = await cluster.store.get(keys.SNAPSHOT)
    return json.loads(entry.value)


def document(topics, partitions):
    return {
        "controller_id": 1,
        "cluster_id": "c",
        "brokers": [{"id": 1, "host": "host", "port": 9092, "rack": ""}],
        "topics": [
            {
                "name": f"topic-{number}",
                "topic_id": "00" * 16,
                "partition_count": partitions,
                "partitions": [{"id": 0, "leader": 1, "leader_epoch": 0}] * partitions,
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


def test_encode_small_cluster_completely():
    complete = document(3, 4)
    value, is_complete = encode(complete)
    assert is_complete
    assert json.loads(value) == complete


def test_encode_large_cluster_without_partitions():
    value, is_complete = encode(document(10, 10), bytes_max=3000)
    assert len(value) <= 3000
    assert not is_complete
    result = json.loads(value)
    assert result["truncated"] is True
    assert len(result["topics"]) == 10
    assert {len(topic["partitions"]) for topic in result["topics"]} == {0}
    assert {topic["partition_count"] for topic in result["topics"]} == {10}


def test_encode_huge_cluster_without_its_last_topics():
    value, is_complete = encode(document(1000, 1), bytes_max=3000)
    assert len(value) <= 3000
    assert not is_complete
    assert 10 < len(json.loads(value)["topics"]) < 40
