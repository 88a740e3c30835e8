"""Markers of many transactions and partitions, of which some have to wait, or are not needed."""

import asyncio

from kafscale.metadata.schema import keys
from kafscale.transactions.model import TransactionState, TransactionVersion
from unit.broker.transaction_coordinator.transactional_cluster import TOPIC, simulate
from unit.broker.transaction_coordinator.transactional_producer import TransactionalProducer

IDS = 20


async def begin_at_another_broker(cluster, count):
    """Transactions whose coordinator is broker 1, in a partition of broker 2."""
    await cluster.start(1)
    await cluster.start(2)
    await cluster.brokers[1].services.topics.create(TOPIC, 1, {}, 10_000, replicas={0: (2, 1)})
    await cluster.wait_until_balanced()
    producers = []
    for number in range(count):
        name = await cluster.id_at(1, f"transfers-{number}")
        producers.append(TransactionalProducer(cluster, name))
        await producers[-1].initialize()
        await producers[-1].send(TOPIC, 0, name.encode())
    return producers


def test_markers_for_a_slow_broker_wait_and_share_requests():
    """Its control plane serves a limited number of requests, and not only markers."""

    async def body(cluster):
        producers = await begin_at_another_broker(cluster, IDS)
        cluster.call_seconds = 4
        for producer in producers[:-1]:
            await producer.end(is_commit=True)
        assert cluster.brokers[1].services.transactions.sender.pending_count == IDS - 1
        assert cluster.marker_requests == cluster.marker_requests_most == 2
        await asyncio.sleep(9)
        assert len(cluster.markers) == IDS - 1
        assert cluster.brokers[1].services.transactions.sender.pending_count == 0
        await producers[-1].end(is_commit=True)
        await cluster.wait_until_ended([(TOPIC, 0)])
        assert len(await cluster.committed_values(TOPIC, 0)) == IDS
        assert cluster.marker_requests_most == 2

    simulate(body)


def test_waiting_markers_follow_the_leader():
    async def body(cluster):
        producers = await begin_at_another_broker(cluster, 4)
        cluster.call_seconds = 30
        for producer in producers:
            await producer.end(is_commit=True)
        await cluster.crash(2)
        await cluster.wait_until_ended([(TOPIC, 0)])
        assert len(cluster.markers) == 2, "the others were written here"
        assert len(await cluster.committed_values(TOPIC, 0)) == 4

    simulate(body)


def test_deleted_topic_is_looked_up_once():
    async def body(cluster):
        broker = await cluster.start(1)
        producer = TransactionalProducer(cluster, "large")
        await producer.initialize()
        await broker.services.transactions.coordinator.add_partitions(
            "large",
            producer.producer_id,
            producer.epoch,
            [("deleted", number) for number in range(1_000)],
            TransactionVersion.V2,
        )
        reads = cluster.connections[1].reads
        reads.clear()
        await producer.end(is_commit=True)
        await asyncio.sleep(3)
        assert (await cluster.record("large")).state is TransactionState.COMPLETE_COMMIT
        assert reads.count(keys.topic_config("deleted")) == 1

    simulate(body)
