"""Only lost brokers are fenced."""

import asyncio

from msgspec.structs import replace

from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import SHARDS_TOPIC
from kafscale.metadata.store.base import Put
from unit.broker.cluster.controller_cluster import simulate


def test_fencing_failure_of_one_stream_does_not_delay_others():
    async def body(cluster):
        await cluster.topic("orders", 12)
        for number in (1, 2, 3):
            await cluster.node(number)
            await asyncio.sleep(0.01)
        await cluster.wait_until_balanced()
        assert cluster.controllers == [1]
        streams = cluster.controller.streams
        streams.failing = {2}
        await cluster.nodes[2].leave()
        await cluster.nodes[3].leave()
        await asyncio.sleep(0.1)
        assert streams.fences == [(3, 1)]
        assert sorted(cluster.owners("orders").values()) == [1] * 8 + [2] * 4
        assert set(cluster.owners(SHARDS_TOPIC).values()) == {1}
        await cluster.topic("payments", 2)
        await asyncio.sleep(20)
        assert set(cluster.owners("payments").values()) == {1}
        streams.failing.clear()
        assert await cluster.wait_until_assigned() < 3
        assert set(cluster.owners("orders").values()) == {1}

    simulate(body, moves_max=100)


def test_owner_missing_in_a_stale_cache_is_not_fenced():
    """The watch of brokers is behind the assignments, which name a broker that has just joined."""

    async def body(cluster):
        await cluster.topic("orders", 4)
        first = await cluster.node(1)
        await cluster.wait_until_assigned()
        first.store.late = {keys.BROKERS}
        await cluster.node(2)
        for topic in ("orders", SHARDS_TOPIC):
            result = cluster.cache.assignments(topic)[0]
            await cluster.store.commit(
                [],
                [
                    Put(
                        keys.assignment(topic, 0),
                        encode_assignment(replace(result, broker_id=2, broker_epoch=1)),
                    )
                ],
            )
        await asyncio.sleep(3)
        assert 2 not in first.cache.brokers
        assert first.streams.fences == []
        assert cluster.owners("orders")[0] == cluster.owners(SHARDS_TOPIC)[0] == 2

    simulate(body)
