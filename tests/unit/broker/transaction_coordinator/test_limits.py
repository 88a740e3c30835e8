"""What transactions may write to the metadata store, and how long they wait for it."""

import asyncio
import dataclasses

import pytest

from kafscale.errors import CoordinatorUnavailableError, TransactionAbortableError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.end_txn import END_TXN, EndTxnRequest
from kafscale.transactions.model import TransactionState, TransactionVersion
from unit.broker.in_memory_broker import CONFIG, run_with_broker
from unit.broker.transaction_coordinator.transactional_cluster import TOPIC, simulate
from unit.broker.transaction_coordinator.transactional_producer import TransactionalProducer


@pytest.mark.parametrize("is_begun", [False, True])
def test_partitions_that_the_store_cannot_hold_are_not_added(is_begun):
    async def body(cluster):
        broker = await cluster.start(1)
        await broker.services.topics.create(TOPIC, 1, {}, 10_000)
        producer = TransactionalProducer(cluster, "large")
        await producer.initialize()
        if is_begun:
            await producer.send(TOPIC, 0, b"value")
        identity = ("large", producer.producer_id, producer.epoch)
        coordinator = broker.services.transactions.coordinator
        before = coordinator.describe("large")
        with pytest.raises(TransactionAbortableError):
            await coordinator.add_partitions(
                *identity, [(f"{number:0249d}", 0) for number in range(7000)], TransactionVersion.V2
            )
        assert coordinator.describe("large") == before
        many = [(TOPIC, number) for number in range(10_000)]
        await coordinator.add_partitions(*identity, many, TransactionVersion.V2)
        stored = await cluster.record("large")
        assert (stored.state, len(stored.partitions)) == (TransactionState.ONGOING, 10_000)

    simulate(body)


def test_aborts_without_a_transaction_count_like_commits_of_offsets():
    async def body(broker):
        await broker.topic(TOPIC)
        producer_id, epoch = await broker.begin("transfers", (TOPIC, 0))

        async def abort():
            nonlocal producer_id, epoch
            ended = await broker.ask(END_TXN, EndTxnRequest("transfers", producer_id, epoch, False))
            if not ended.error_code:
                producer_id, epoch = ended.producer_id, ended.producer_epoch
            return ErrorCode.of(ended.error_code)

        assert await abort() is ErrorCode.NONE
        await asyncio.sleep(2)
        loop = asyncio.get_running_loop()
        started = loop.time()
        assert {await abort() for _ in range(20)} == {ErrorCode.NONE}
        assert loop.time() - started > 10

    limits = dataclasses.replace(CONFIG.offsets, user_commit_bytes_per_second=400)
    run_with_broker(body, config=dataclasses.replace(CONFIG, offsets=limits))


def test_requests_wait_for_the_store_for_a_limited_time():
    async def body(cluster):
        broker = await cluster.start(1)
        await broker.services.topics.create(TOPIC, 1, {}, 10_000)
        producer = TransactionalProducer(cluster, "transfers")
        await producer.initialize()
        await producer.send(TOPIC, 0, b"value")
        coordinator = broker.services.transactions.coordinator
        cluster.connections[1].cut()
        started = asyncio.get_running_loop().time()
        with pytest.raises(CoordinatorUnavailableError):
            await coordinator.end(
                "transfers",
                producer.producer_id,
                producer.epoch,
                is_commit=True,
                version=TransactionVersion.V2,
            )
        assert asyncio.get_running_loop().time() - started == pytest.approx(5)
        cluster.connections[1].heal()
        await producer.end(is_commit=True)
        assert await cluster.committed_values(TOPIC, 0) == [b"value"]

    simulate(body)
