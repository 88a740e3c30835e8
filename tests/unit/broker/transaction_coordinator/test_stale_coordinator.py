"""A coordinator that has lost its shards to another one, and cannot know it."""

import asyncio

from kafscale.errors import StoreUnavailableError
from unit.broker.transaction_coordinator.transactional_cluster import TOPIC, simulate
from unit.broker.transaction_coordinator.transactional_producer import TransactionalProducer


def test_late_marker_of_a_former_coordinator_does_not_end_the_next_transaction():
    async def body(cluster):
        await cluster.start(1)
        await cluster.start(2)
        await cluster.brokers[1].services.topics.create(TOPIC, 1, {}, 10_000, replicas={0: (2,)})
        await cluster.wait_until_balanced()
        group = await cluster.id_at(2, "group")
        producer = TransactionalProducer(cluster, await cluster.id_at(1), is_classic=True)
        await producer.initialize()
        await producer.commit_offset(group, TOPIC, 1)
        cluster.failures[2] = StoreUnavailableError("cut")
        await producer.end(is_commit=True)
        # Broker 1 loses etcd, but still reaches broker 2 after a while.
        cluster.connections[1].cut()
        while await cluster.coordinator(producer.id) is not cluster.brokers[2]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await producer.commit_offset(group, TOPIC, 2)
        assert await cluster.committed_offset(group) == 1
        cluster.failures.clear()
        await asyncio.sleep(5)
        assert await cluster.committed_offset(group) == 1
        await producer.end(is_commit=False)
        await asyncio.sleep(5)
        assert await cluster.committed_offset(group) == 1

    simulate(body)
