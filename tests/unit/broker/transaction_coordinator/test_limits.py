"""What transactions may write to the metadata store, and how long they wait for it."""

import asyncio
import dataclasses
from bisect import bisect_left

import pytest
from msgspec.structs import replace

from doubles.turn_timer import measured_turns
from doubles.virtual_time import START_MS
from kafscale.broker.shards.writer import fit_together
from kafscale.broker.transaction_coordinator.limits import check_size
from kafscale.errors import CoordinatorUnavailableError, TransactionAbortableError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.transaction_codec import STORED_STATES, encode_transaction
from kafscale.metadata.store.base import OPERATIONS_MAX, Put
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.end_txn import END_TXN, EndTxnRequest
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafscale.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from kafscale.transactions.model import (
    EPOCH_MAX,
    NO_PRODUCER_ID,
    TransactionRecord,
    TransactionState,
    TransactionVersion,
)
from unit.broker.in_memory_broker import CONFIG, run_with_broker
from unit.broker.transaction_coordinator.transactional_cluster import TOPIC, simulate
from unit.broker.transaction_coordinator.transactional_producer import TransactionalProducer

IDS = 20_000
TURN_SECONDS_MAX = 0.05
"""Generous, because machines of tests are slow: what visits all ids at once exceeds it by far."""


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


def test_partitions_are_accepted_only_if_the_outcome_fits_too():
    """It is longer than the record of the open transaction, and must not be lost."""
    record = TransactionRecord(
        transactional_id="large",
        producer_id=1,
        epoch=0,
        timeout_ms=1,
        state=TransactionState.EMPTY,
        updated_ms=START_MS,
    )
    names = [f"{number:0249d}" for number in range(5_850)]

    def accepts(last_length):
        try:
            check_size(record, partitions(last_length))
        except TransactionAbortableError:
            return False
        return True

    def partitions(last_length):
        return frozenset((name, 0) for name in [*names, "x" * last_length])

    while not accepts(1):
        names.pop()
    length = bisect_left(range(250), True, lo=2, key=lambda each: not accepts(each)) - 1
    assert len(names) < 5_850
    largest = replace(
        record,
        partitions=partitions(length),
        producer_id=(1 << 63) - 1,
        epoch=EPOCH_MAX,
        last_epoch=EPOCH_MAX - 1,
        timeout_ms=(1 << 31) - 1,
        started_ms=START_MS,
        version=TransactionVersion.V2,
    )
    for state in STORED_STATES:
        for other_id in (NO_PRODUCER_ID, (1 << 63) - 1):
            ids = {"previous_producer_id": other_id, "next_producer_id": other_id}
            value = encode_transaction(replace(largest, state=state, **ids))
            assert fit_together([Put(keys.transactional_id("large"), value)])


def test_new_ids_wait_while_there_are_too_many():
    async def body(cluster):
        broker = await cluster.start(1)
        coordinator = broker.services.transactions.coordinator
        coordinator.settings = replace(coordinator.settings, ids_max=2)
        for _ in range(2):
            await coordinator.init_producer("first", 60_000)
        await asyncio.sleep(200)
        await coordinator.init_producer("second", 60_000)
        request = InitProducerIdRequest("third", 60_000)
        for _ in range(3):
            response = await broker.ask(INIT_PRODUCER_ID, request)
            assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await coordinator.init_producer("first", 60_000)
        await asyncio.sleep(150)
        await coordinator.init_producer("second", 60_000)
        await asyncio.sleep(200)
        await coordinator.init_producer("third", 60_000)
        assert {each.transactional_id for each in coordinator} == {"second", "third"}
        assert coordinator.state_counts() == {TransactionState.EMPTY: 2}

    simulate(body)


def test_many_ids_hold_up_nothing_else():
    """Flink takes a new id for every checkpoint and subtask."""

    async def body(cluster):
        puts = []
        for number in range(IDS):
            record = TransactionRecord(
                transactional_id=f"sink-{number}",
                producer_id=number,
                epoch=1,
                timeout_ms=60_000,
                state=TransactionState.COMPLETE_COMMIT,
                started_ms=START_MS,
                updated_ms=START_MS,
            )
            key = keys.transactional_id(record.transactional_id)
            puts.append(Put(key, encode_transaction(record)))
        for start in range(0, IDS, OPERATIONS_MAX):
            await cluster.stores.metadata.commit([], puts[start : start + OPERATIONS_MAX])
        with measured_turns() as turns:
            broker = await cluster.start(1)
            coordinator = broker.services.transactions.coordinator
            assert coordinator.state_counts() == {TransactionState.COMPLETE_COMMIT: IDS}
            listed = await broker.ask(
                LIST_TRANSACTIONS, ListTransactionsRequest(transactional_id_pattern=".*77")
            )
            assert len(listed.transactions) == IDS // 100
            await asyncio.sleep(coordinator.settings.id_expiration_ms / 1000 + 20)
        assert turns.longest_seconds < TURN_SECONDS_MAX, turns.longest
        assert list(coordinator) == []
        assert not (await cluster.stores.metadata.range(keys.TRANSACTIONS)).entries

    simulate(body)
