"""Real clients whose commits exceed the limit, at a broker without etcd: they wait, and succeed."""

import asyncio
import time
from collections.abc import Callable

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, TopicPartition

from kafscale.broker.group_coordinator.commit_limits import WAIT_SECONDS_MAX
from services.broker import BrokerProcess
from services.wire import Wire

pytestmark = pytest.mark.timeout(120)

RATE = 2048
METADATA = "m" * 3000
BURST_COUNT = 3
"""How many offsets with this metadata use up the burst of five seconds."""
PARTITIONS = 6
"""More than a burst, so that they wait until the limit is unused: longer than one request may."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    settings = {"offsets_group_commit_bytes_per_second": str(RATE)}
    with BrokerProcess(tmp_path_factory.mktemp("broker"), **settings) as running:
        with Wire(running.port) as wire:
            wire.create("orders", PARTITIONS)
        yield running


def commit_with_librdkafka(address: str, group: str, offset: int, count: int) -> None:
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    offsets = [TopicPartition("orders", index, offset, metadata=METADATA) for index in range(count)]
    for each in consumer.commit(offsets=offsets, asynchronous=False):
        assert each.error is None, each.error
    consumer.close()


def commit_with_kafka_python(address: str, group: str, offset: int, count: int) -> None:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=address, group_id=group, enable_auto_commit=False
    )
    offsets = {
        kafka.TopicPartition("orders", index): kafka.OffsetAndMetadata(offset, METADATA, -1)
        for index in range(count)
    }
    consumer.assign(list(offsets))
    consumer.commit(offsets)
    consumer.close()


def commit_with_aiokafka(address: str, group: str, offset: int, count: int) -> None:
    async def commit() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address, group_id=group, enable_auto_commit=False
        )
        await consumer.start()
        try:
            offsets = {
                aiokafka.TopicPartition("orders", index): (offset, METADATA)
                for index in range(count)
            }
            consumer.assign(list(offsets))
            await consumer.commit(offsets)
        finally:
            await consumer.stop()

    asyncio.run(commit())


@pytest.mark.parametrize(
    "commit", [commit_with_librdkafka, commit_with_kafka_python, commit_with_aiokafka]
)
def test_clients_repeat_a_throttled_commit(broker, commit: Callable[..., None]):
    group = commit.__name__
    commit(broker.address, group, 1, BURST_COUNT)
    began = time.monotonic()
    commit(broker.address, group, 17, PARTITIONS)
    assert time.monotonic() - began > WAIT_SECONDS_MAX
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group})
    committed = consumer.committed(
        [TopicPartition("orders", index) for index in range(PARTITIONS)], timeout=20
    )
    consumer.close()
    assert {each.offset for each in committed} == {17}
