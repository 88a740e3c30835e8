"""Our transactional producer, consumer and administration with real brokers, beside librdkafka.

Both protocols of `transaction.version` are used with Apache Kafka and with Kafscale.
"""

import asyncio
import time
import uuid

import confluent_kafka
import pytest

from kafscale.admin.transactions import hanging, producers, transactions
from kafscale.admin.transactions.transactions import TransactionFilter
from kafscale.client import topics
from kafscale.client.blocking import BlockingClient, parse_addresses
from kafscale.client.client import Client
from kafscale.client.consumer.reader import Reader
from kafscale.client.consumer.start_position import StartPosition
from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import (
    AbortableTransactionError,
    BrokerResponseError,
    ProducerFencedError,
    check,
)
from kafscale.client.group_offsets import committed
from kafscale.client.isolation import IsolationLevel
from kafscale.client.transactions import detached
from kafscale.client.transactions.blocking import BlockingTransactionalProducer
from kafscale.client.transactions.group_commit import GroupMembership
from kafscale.client.transactions.producer import State, TransactionalProducer, TransactionSettings
from kafscale.errors import InvalidRequestError, InvalidTransactionStateError
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import Record, build
from services import java
from services.broker import BrokerProcess
from services.kafka_server import KafkaServer

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    # Hanging transactions can only be caused without verification (KIP-890).
    "transaction.partition.verification.enable": "false",
}
WAIT_S_MAX = 30
OFFSETS_TOPIC = "__consumer_offsets"
COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    """The address of an Apache Kafka."""
    if not java.is_available():
        pytest.skip("there is no Java to run Apache Kafka with")
    with KafkaServer(tmp_path_factory.mktemp("kafka"), SETTINGS) as server:
        yield server.address


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.address


@pytest.fixture(params=["kafka", "ours"])
def cluster(request):
    """The address of a cluster."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=[2, 1], ids=["version 2", "classic"])
def settings(request):
    """Settings of producers, with the protocol."""
    return TransactionSettings(version_max=request.param)


def on_cluster(address, scenario):
    """Run a scenario with a client, and a new topic of two partitions."""

    async def run():
        async with _client(address) as client:
            topic = f"orders-{uuid.uuid4().hex[:8]}"
            await topics.create(client, topic, 2, {}, exists_ok=False)
            await topics.wait_for_leaders(client, topic)
            await scenario(client, topic)

    asyncio.run(run())


def test_records_and_offsets_appear_with_the_commit(cluster, settings):
    async def scenario(client, topic):
        group = GroupMembership(f"group of {topic}")
        async with TransactionalProducer(client, f"id of {topic}", settings) as producer:
            await producer.init()
            for number in range(3):
                await producer.begin()
                for partition in (0, 1):
                    for part in (b"a", b"b"):
                        await producer.send(topic, b"%d%s" % (number, part), partition=partition)
                await producer.send_offsets(group, {(topic, 0): number})
                await producer.flush()
                assert await _has_open_transaction(client, OFFSETS_TOPIC, producer)
                seen = await _read(client, topic, COMMITTED)
                assert not [value for value in seen if value.startswith(b"%d" % number)]
                await (producer.abort() if number == 1 else producer.commit())
        both = sorted([b"0a", b"0b", b"2a", b"2b"] * 2)
        await _expect_committed(client, topic, both)
        assert len(await _read(client, topic, UNCOMMITTED)) == 12
        assert _read_by_librdkafka(cluster, topic) == both
        async with Coordinator(client, group.group_id) as coordinator:
            offsets = await committed(coordinator, [(topic, 0)], stable=True)
        assert offsets[topic, 0].offset == 2

    on_cluster(cluster, scenario)


def test_a_failed_transaction_is_aborted_and_the_producer_goes_on(cluster, settings):
    async def scenario(client, topic):
        async with TransactionalProducer(client, f"id of {topic}", settings) as producer:
            await producer.init()
            for number in range(3):
                await producer.begin()
                await producer.send(topic, b"lost", partition=number % 2)
                await producer.flush()
                with pytest.raises(AbortableTransactionError, match="partition 9"):
                    await producer.send(topic, b"nowhere", partition=9)
                with pytest.raises(AbortableTransactionError, match="partition 9"):
                    await producer.commit()
                await producer.abort()
                await producer.begin()
                await producer.send(topic, b"%d" % number, partition=number % 2)
                await producer.commit()
        await _expect_committed(client, topic, [b"0", b"1", b"2"])

    on_cluster(cluster, scenario)


def test_a_new_producer_fences_the_old_one(cluster, settings):
    async def scenario(client, topic):
        transactional_id = f"id of {topic}"
        async with (
            TransactionalProducer(client, transactional_id, settings) as old,
            TransactionalProducer(client, transactional_id, settings) as new,
        ):
            await old.init()
            await old.begin()
            await old.send(topic, b"of the old", partition=0)
            await old.flush()
            await new.init()
            await old.send(topic, b"of the old", partition=0)
            with pytest.raises(AbortableTransactionError):
                await old.commit()
            with pytest.raises(ProducerFencedError):
                await old.abort()
            with pytest.raises(InvalidTransactionStateError, match="DONE"):
                await old.begin()
            await new.begin()
            await new.send(topic, b"of the new", partition=0)
            await new.commit()
        await _expect_committed(client, topic, [b"of the new"])

    on_cluster(cluster, scenario)


def test_a_transaction_is_handed_over_and_ended_once(cluster, settings):
    async def scenario(client, topic):
        def write():
            records = [Record(index, 0, None, b"%d" % index) for index in range(3)]
            with (
                BlockingClient(parse_addresses(cluster)) as blocking,
                BlockingTransactionalProducer(blocking, f"id of {topic}", settings) as producer,
            ):
                producer.init()
                producer.begin()
                producer.send_batch(topic, 1, build(records))
                producer.send_batch(topic, 1, build(records))
                return producer.detach(), producer.state

        handed_over, state = await asyncio.to_thread(write)
        assert state is State.DONE
        assert await _read(client, topic, COMMITTED) == []
        for _ in range(2):
            await detached.end(client, handed_over, committed=True)
        await _expect_committed(client, topic, sorted([b"0", b"1", b"2"] * 2))

    on_cluster(cluster, scenario)


def test_transactions_are_listed_described_and_aborted_by_their_id(cluster, settings):
    async def scenario(client, topic):
        transactional_id = f"id of {topic}"
        with pytest.raises(BrokerResponseError, match="transaction list"):
            await transactions.abort(client, transactional_id)
        async with TransactionalProducer(client, transactional_id, settings) as producer:
            await producer.init()
            await producer.begin()
            await producer.send(topic, b"lost", partition=1)
            await producer.flush()
            mine = TransactionFilter(producer_ids=[producer.producer.producer_id])
            (listed,) = await transactions.list_all(client, mine)
            assert (listed.transactional_id, listed.state) == (transactional_id, "Ongoing")
            assert not await transactions.list_all(
                client, TransactionFilter(["CompleteAbort"], [listed.producer_id])
            )
            old = TransactionFilter(open_longer_than_ms=60_000)
            assert transactional_id not in [
                each.transactional_id for each in await transactions.list_all(client, old)
            ]
            matching = TransactionFilter(pattern="id of orders-.*")
            assert listed in await transactions.list_all(client, matching)
            (described,) = await transactions.describe(client, [transactional_id])
            assert [(each.topic, each.partitions) for each in described.topics] == [(topic, [1])]
            assert described.started_ms is not None
            assert await transactions.describe_listed(client, [listed]) == [described]
            (writer,) = await producers.describe(client, topic, [1])
            assert (writer.producer_id, writer.transaction_start_offset) == (listed.producer_id, 0)
            assert await _find_hanging(client, topic) == []
            assert await hanging.find(client, [topic], now_ms=time.time_ns() // 1_000_000) == []
            with pytest.raises(InvalidRequestError, match=f"transactional id, {transactional_id}"):
                await producers.abort_at(client, topic, 1, 0)

            assert (await transactions.abort(client, transactional_id)).state == "Ongoing"
            with pytest.raises(ProducerFencedError):
                await producer.commit()
        (described,) = await transactions.describe(client, [transactional_id])
        assert described.state in {"PrepareAbort", "CompleteAbort", "Empty"}
        assert await _read(client, topic, COMMITTED) == []

    on_cluster(cluster, scenario)


def test_a_hanging_transaction_is_found_and_aborted(kafka):
    async def scenario(client, topic):
        async with TransactionalProducer(
            client, f"id of {topic}", TransactionSettings(version_max=1)
        ) as producer:
            await producer.init()
            await producer.begin()
            await producer.send(topic, b"before", partition=0)
            await producer.commit()
            await _expect_committed(client, topic, [b"before"])  # The marker is written.
            await _append_late(client, topic, producer)
            await producer.begin()
            await producer.send(topic, b"after", partition=1)
            await producer.commit()
        (found,) = await _find_hanging(client, topic)
        assert (found.topic, found.partition, found.start_offset) == (topic, 0, 2)
        await _expect_committed(client, topic, [b"after", b"before"])
        (at,) = [
            each
            for each in await producers.describe(client, topic, [0])
            if each.transaction_start_offset is not None
        ]
        assert at.producer_id == found.producer_id
        await producers.abort_at(client, topic, 0, found.start_offset)
        assert await _find_hanging(client, topic) == []

    on_cluster(kafka, scenario)


async def _append_late(client, topic, producer):
    """Write a batch after the end of its transaction, as a delayed request of an old client."""
    metadata = await client.topic(topic)
    batch = build(
        [Record(0, int(time.time() * 1000), None, b"late")],
        producer_id=producer.producer.producer_id,
        producer_epoch=producer.producer.producer_epoch,
        base_sequence=1,
        transactional=True,
    )
    connection = await client.broker(metadata.partitions[0].leader_id)
    request = ProduceRequest(
        transactional_id=producer.transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topics=[
            TopicToProduce(topic, metadata.topic_id, [PartitionToProduce(0, memoryview(batch))])
        ],
    )
    response = await connection.ask(PRODUCE, request, version_max=11)
    check(topic, response.topics[0].partitions[0].error_code)


async def _find_hanging(client, topic):
    now_ms = int(time.time() * 1000) + 1000
    return await hanging.find(client, [topic], now_ms=now_ms, idle_ms=0)


async def _has_open_transaction(client, topic, producer):
    return any(
        each.producer_id == producer.producer.producer_id
        and each.transaction_start_offset is not None
        for each in await producers.describe(client, topic)
    )


async def _expect_committed(client, topic, values):
    """Wait until these are the committed values: markers follow the decision."""
    deadline = time.monotonic() + WAIT_S_MAX
    while (read := await _read(client, topic, COMMITTED)) != values:
        assert time.monotonic() < deadline, f"{read} instead of {values}"
        await asyncio.sleep(0.05)


async def _read(client, topic, isolation):
    """The values up to the end, sorted."""
    reader = Reader(client, [topic], follow=False, notify=print, isolation=isolation)
    await reader.open(StartPosition(offset=0))
    return sorted([each.value async for chunk in reader.batches() for each in chunk.records])


def _read_by_librdkafka(address, topic):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in (0, 1)])
    values, ended = [], 0
    while ended < 2:
        message = consumer.poll(WAIT_S_MAX)
        assert message is not None
        if message.error():
            ended += 1
        else:
            values.append(message.value())
    consumer.close()
    return sorted(values)


def _client(address):
    return Client(parse_addresses(address))
