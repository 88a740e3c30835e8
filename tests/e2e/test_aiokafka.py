"""Producers, consumers and the admin client of aiokafka, with default and other settings."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

pytestmark = pytest.mark.timeout(40)


@asynccontextmanager
async def started(client):
    """Start a client, and stop it at the end of the block."""
    await client.start()
    try:
        yield client
    finally:
        stop = getattr(client, "stop", None) or client.close
        await stop()


async def consume(address, topic, count, **settings):
    async with started(
        AIOKafkaConsumer(bootstrap_servers=address, group_id=None, **settings)
    ) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        async with asyncio.timeout(20):
            return [await consumer.getone() for _ in range(count)]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"acks": 0},
        {"acks": 1},
        {"acks": "all"},
        {"enable_idempotence": True},
        {"compression_type": "gzip"},
        {"compression_type": "lz4"},
        {"compression_type": "snappy"},
        {"compression_type": "zstd"},
    ],
    ids=str,
)
def test_consumer_reads_what_the_producer_sent(broker, topic, settings):
    async def scenario():
        values = [b"value %d" % number for number in range(200)]
        producing = AIOKafkaProducer(bootstrap_servers=broker.address, **settings)
        async with started(producing) as producer:
            sent = [await producer.send(topic, value, key=b"key") for value in values]
            acknowledged = await asyncio.gather(*sent)
        if settings.get("acks") != 0:
            assert [each.offset for each in acknowledged] == list(range(200))
        records = await consume(broker.address, topic, 200)
        assert [record.value for record in records] == values
        assert [record.offset for record in records] == list(range(200))

    asyncio.run(scenario())


def test_headers_nulls_and_timestamps_are_preserved(broker, topic):
    async def scenario():
        async with started(AIOKafkaProducer(bootstrap_servers=broker.address)) as producer:
            headers = [("name", b"value"), ("name", b"")]
            await producer.send_and_wait(
                topic, None, key=b"key", timestamp_ms=123_456, headers=headers
            )
        (record,) = await consume(broker.address, topic, 1)
        assert (record.key, record.value, record.timestamp) == (b"key", None, 123_456)
        assert list(record.headers) == headers

    asyncio.run(scenario())


def test_consumer_waits_for_later_records(broker, topic):
    async def scenario():
        async with started(AIOKafkaProducer(bootstrap_servers=broker.address)) as producer:
            await producer.send_and_wait(topic, b"first")
            reading = asyncio.create_task(consume(broker.address, topic, 2))
            await asyncio.sleep(0.5)
            await producer.send_and_wait(topic, b"second")
            assert [record.value for record in await reading] == [b"first", b"second"]

    asyncio.run(scenario())


def test_consumer_finds_offsets(broker, topic):
    async def scenario():
        async with started(AIOKafkaProducer(bootstrap_servers=broker.address)) as producer:
            for number in range(5):
                await producer.send_and_wait(topic, b"", timestamp_ms=1000 + number)
        partition = TopicPartition(topic, 0)
        consuming = AIOKafkaConsumer(bootstrap_servers=broker.address, group_id=None)
        async with started(consuming) as consumer:
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 5}
            result = await consumer.offsets_for_times({partition: 1003})
            assert result[partition].offset == 3

    asyncio.run(scenario())


def test_admin_client_creates_describes_and_deletes_topics(broker, topic):
    async def scenario():
        async with started(AIOKafkaAdminClient(bootstrap_servers=broker.address)) as admin:
            await admin.create_topics([NewTopic(topic, 2, 1)])
            (described,) = await admin.describe_topics([topic])
            assert len(described["partitions"]) == 2
            await admin.delete_topics([topic])
            assert topic not in await admin.list_topics()

    asyncio.run(scenario())
