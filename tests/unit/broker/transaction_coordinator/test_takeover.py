"""Crashes of brokers at every step of a transaction: it is committed or aborted as a whole."""

import pytest

from kafscale.metadata.schema.model import SHARDS_TOPIC, shard_of
from unit.broker.transaction_coordinator.transactional_cluster import (
    TOPIC,
    TransactionCluster,
    simulate,
)
from unit.broker.transaction_coordinator.transactional_producer import TransactionalProducer

COORDINATOR, OTHER = 1, 2


@pytest.mark.parametrize("crashing", [COORDINATOR, OTHER], ids=["coordinator", "other"])
@pytest.mark.parametrize(
    ("is_commit", "is_classic"),
    [(True, False), (False, False), (True, True)],
    ids=["commit", "abort", "classic"],
)
def test_transaction_is_whole_wherever_a_broker_crashes(is_commit, is_classic, crashing):
    """Each run crashes one step later, until the transaction has no further step."""

    async def body(cluster: TransactionCluster) -> None:
        await prepare(cluster)
        cluster.crash_step = (crashing, len(crashes) + 1)
        await run_transaction(cluster, is_commit=is_commit, is_classic=is_classic)
        crashes.append(cluster.crashed_at)

    crashes: list[str | None] = []
    while None not in crashes:
        simulate(body)
    assert {"before a commit", "after a commit"} <= set(crashes)
    assert crashing == OTHER or {"before a call", "after a call"} <= set(crashes)


async def prepare(cluster: TransactionCluster) -> None:
    """Start two brokers, each with a partition of the topic."""
    await cluster.start(COORDINATOR)
    await cluster.start(OTHER)
    await cluster.brokers[COORDINATOR].services.topics.create(
        TOPIC, 2, {}, 10_000, replicas={0: (1, 2), 1: (2, 1)}
    )
    await cluster.wait_until_balanced()


async def run_transaction(
    cluster: TransactionCluster, *, is_commit: bool, is_classic: bool
) -> None:
    """A transaction in which both brokers have a partition and the offsets of a group."""
    transactional_id = await cluster.id_at(COORDINATOR)
    groups = [await cluster.id_at(broker_id, "readers") for broker_id in (COORDINATOR, OTHER)]
    producer = TransactionalProducer(cluster, transactional_id, is_classic=is_classic)
    await producer.initialize()
    await producer.send(TOPIC, 0, b"first")
    await producer.send(TOPIC, 1, b"first")
    for group in groups:
        await producer.commit_offset(group, TOPIC, 5)
    await producer.end(is_commit=is_commit)

    partitions = [(TOPIC, 0), (TOPIC, 1), *((SHARDS_TOPIC, shard_of(each)) for each in groups)]
    await cluster.wait_until_ended(partitions)
    expected = [b"first"] if is_commit else []
    for number in range(2):
        assert await cluster.committed_values(TOPIC, number) == expected
    for group in groups:
        assert await cluster.committed_offset(group) == (5 if is_commit else None)

    other = TransactionalProducer(cluster, transactional_id, is_classic=is_classic)
    await other.initialize()
    await other.send(TOPIC, 0, b"second")
    await other.end(is_commit=True)
    await cluster.wait_until_ended(partitions)
    assert await cluster.committed_values(TOPIC, 0) == [*expected, b"second"]
