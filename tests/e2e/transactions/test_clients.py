"""Transactions of librdkafka and aiokafka: outcomes, isolation, and fencing."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer, structs
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from e2e.transactions.numbered_records import create
from services.committed_records import read_values

pytestmark = pytest.mark.timeout(120)

WAIT_S_MAX = 30


@pytest.fixture
def address(start_server):
    server = start_server()
    create(server.address, "topic", "other")
    return server.address


def transactional(address: str, id_: str = "producer", **settings: object) -> Producer:
    producer = Producer({"bootstrap.servers": address, "transactional.id": id_} | settings)
    producer.init_transactions(WAIT_S_MAX)
    return producer


def write(producer: Producer, *values: str, topic: str = "topic") -> None:
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(WAIT_S_MAX) == 0


def committed(address: str, topic: str = "topic") -> list[str]:
    return read_values(address, topic)[0]


def uncommitted(address: str, topic: str = "topic") -> list[str]:
    return read_values(address, topic, isolation="read_uncommitted")[0]


def test_only_committed_records_are_read(address):
    producer = transactional(address)
    producer.begin_transaction()
    write(producer, "first")
    write(producer, "second", topic="other")
    assert (committed(address), committed(address, "other")) == ([], [])
    assert uncommitted(address) == ["first"]
    producer.commit_transaction(WAIT_S_MAX)
    assert (committed(address), committed(address, "other")) == (["first"], ["second"])
    producer.begin_transaction()
    write(producer, "aborted")
    producer.abort_transaction(WAIT_S_MAX)
    producer.begin_transaction()
    write(producer, "third")
    producer.commit_transaction(WAIT_S_MAX)
    assert committed(address) == ["first", "third"]
    assert uncommitted(address) == ["first", "aborted", "third"]


def test_open_transaction_hides_later_records(address):
    open_one, other = transactional(address, "open"), transactional(address, "other")
    open_one.begin_transaction()
    write(open_one, "open")
    other.begin_transaction()
    write(other, "committed")
    other.commit_transaction(WAIT_S_MAX)
    assert committed(address) == []
    open_one.abort_transaction(WAIT_S_MAX)
    assert committed(address) == ["committed"]


def test_second_producer_fences_the_first(address):
    first = transactional(address)
    first.begin_transaction()
    write(first, "fenced")
    second = transactional(address)
    with pytest.raises(KafkaException) as error:
        first.commit_transaction(WAIT_S_MAX)
    assert error.value.args[0].fatal()
    second.begin_transaction()
    write(second, "second")
    second.commit_transaction(WAIT_S_MAX)
    assert committed(address) == ["second"]


def test_expired_transaction_is_aborted(address):
    producer = transactional(address, **{"transaction.timeout.ms": 1000})
    producer.begin_transaction()
    write(producer, "expired")
    other = transactional(address, "other")
    other.begin_transaction()
    write(other, "committed")
    other.commit_transaction(WAIT_S_MAX)
    values: list[str] = []
    for _ in range(200):
        values = committed(address)
        if values:
            break
    assert values == ["committed"]
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S_MAX)


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_of_a_transaction(address, is_commit):
    consumer = Consumer({"bootstrap.servers": address, "group.id": "group"})
    producer = transactional(address)
    producer.begin_transaction()
    write(producer, "value")
    offsets = [TopicPartition("topic", 0, 5)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), WAIT_S_MAX)
    if is_commit:
        producer.commit_transaction(WAIT_S_MAX)
    else:
        producer.abort_transaction(WAIT_S_MAX)
    (found,) = consumer.committed([TopicPartition("topic", 0)], WAIT_S_MAX)
    assert found.offset == (5 if is_commit else -1001)
    consumer.close()


def test_aiokafka(address):
    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=address, transactional_id="aiokafka")
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait("topic", b"committed", partition=0)
            await producer.begin_transaction()
            await producer.send_and_wait("topic", b"aborted", partition=0)
            offsets = {structs.TopicPartition("topic", 0): 5}
            await producer.send_offsets_to_transaction(offsets, "group")
            await producer.abort_transaction()
        finally:
            await producer.stop()

    asyncio.run(run())
    assert committed(address) == ["committed"]
    assert uncommitted(address) == ["committed", "aborted"]
