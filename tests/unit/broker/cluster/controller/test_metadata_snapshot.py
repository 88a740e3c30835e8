"""The snapshot of the metadata, as its readers find it."""

import asyncio
import json

from kafscale.broker.cluster.controller.metadata_snapshot import encode
from kafscale.metadata.schema import keys
from unit.broker.cluster.council import CLUSTER_ID, play


async def stored(council):
    entry = await council.store.get(keys.SNAPSHOT)
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


def test_it_shows_brokers_and_topics_and_who_leads():
    async def body(council):
        await council.seat(1, rack="a")
        await council.topic("orders", 2)
        await council.settled()
        await asyncio.sleep(2)
        assert await stored(council) == {
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

    play(body)


def test_it_follows_the_cluster_but_not_more_often_than_it_may():
    async def body(council):
        await council.seat(1)
        await council.settled()
        await asyncio.sleep(3)
        before = (await council.store.get(keys.SNAPSHOT)).mod_revision
        await council.seats[1].drain()
        await asyncio.sleep(2)
        assert (await council.store.get(keys.SNAPSHOT)).mod_revision == before, "nothing to tell"
        written = council.seats[1].store.commits
        written.clear()
        for number in range(40):
            await council.topic(f"topic-{number}", 1)
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        puts = [
            operation
            for _, operations, done in written
            for operation in operations
            if operation.key == keys.SNAPSHOT and done.succeeded
        ]
        assert 3 <= len(puts) <= 6
        assert len((await stored(council))["topics"]) == 40

    play(body)


def test_the_next_controller_goes_on_with_it():
    async def body(council):
        first = await council.seat(1)
        await council.seat(2)
        await asyncio.sleep(2)
        assert (await stored(council))["controller_id"] == 1
        await first.leave()
        await asyncio.sleep(2)
        found = await stored(council)
        assert found["controller_id"] == 2
        assert [broker["id"] for broker in found["brokers"]] == [2]

    play(body)


def test_a_small_cluster_is_shown_in_whole():
    whole = document(3, 4)
    value, is_whole = encode(whole)
    assert is_whole
    assert json.loads(value) == whole


def test_a_large_cluster_is_shown_without_partitions():
    value, is_whole = encode(document(10, 10), bytes_max=3000)
    assert len(value) <= 3000
    assert not is_whole
    found = json.loads(value)
    assert found["truncated"] is True
    assert len(found["topics"]) == 10
    assert {len(topic["partitions"]) for topic in found["topics"]} == {0}
    assert {topic["partition_count"] for topic in found["topics"]} == {10}


def test_a_huge_cluster_is_shown_without_its_last_topics():
    value, is_whole = encode(document(1000, 1), bytes_max=3000)
    assert len(value) <= 3000
    assert not is_whole
    assert 10 < len(json.loads(value)["topics"]) < 40
