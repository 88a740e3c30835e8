"""Produce, in transactions: each batch has its own result, and none is appended unverified.

What Kafka answers alike is compared with it in tests/conformance/transactions.
"""

import pytest

from doubles import virtual_time
from kafscale.config import Config
from kafscale.config.sections.s3 import S3
from kafscale.config.sections.transactions import Transaction
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import Record, build
from unit.broker.in_memory_broker import run_with_broker

ID = "transfers"
CLASSIC, ADDS_PARTITIONS = 11, 12
LARGE = b"x" * 2_000_000


def batch(producer, sequence=0, *, value=b"value", transactional=True):
    producer_id, epoch = producer
    return build(
        [Record(0, virtual_time.clock_ms(), None, value)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


async def produce(broker, *batches, version=ADDS_PARTITIONS, transactional_id=ID):
    """Send one batch to each partition; returns their error codes."""
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topics=[
            TopicToProduce(
                name="orders",
                partitions=[
                    PartitionToProduce(index=number, records=memoryview(bytes(each)))
                    for number, each in enumerate(batches)
                ],
            )
        ],
    )
    response = await broker.ask(PRODUCE, request, version)
    return [ErrorCode.of(each.error_code) for each in response.topics[0].partitions]


def ends(broker):
    """The high watermarks of all partitions."""
    return [broker.log("orders", number).high_watermark for number in range(3)]


def test_each_batch_has_its_own_result():
    """The first producer is fenced in one partition, and continues in the others."""

    async def body(broker):
        await broker.topic("orders", 3, max_message_bytes="4000000")
        old = await broker.begin(ID, ("orders", 1))
        assert await produce(broker, batch(old)) == [ErrorCode.NONE]
        new = await broker.begin("other", ("orders", 0))
        fencing = (old[0], old[1] + 5)
        broker.log("orders", 2).append_end_marker(*fencing, 0, 0, virtual_time.clock_ms())
        await broker.services.storage.wal.flush()
        codes = await produce(broker, batch(old, 1), batch(old, value=LARGE), batch(old))
        assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH]
        assert await produce(broker, batch(new)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        assert ends(broker) == [2, 1, 1]

    run_with_broker(body)


@pytest.mark.parametrize("value", [b"value", LARGE], ids=["small", "large"])
def test_classic_producer_needs_its_partition_in_the_transaction(value):
    async def body(broker):
        await broker.topic("orders", 3, max_message_bytes="4000000")
        producer = await broker.begin(ID, ("orders", 1))
        batches = [batch(producer, value=value)] * 2
        codes = await produce(broker, *batches, version=CLASSIC)
        assert codes == [ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.NONE]
        codes = await produce(broker, *batches, version=CLASSIC - 1)
        assert codes == [ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE]
        assert ends(broker) == [0, 1, 0]  # The second one is a duplicate.

    run_with_broker(body)


def test_partition_is_added_by_the_first_batch():
    async def body(broker):
        await broker.topic("orders", 3, max_message_bytes="4000000")
        producer = await broker.begin(ID)
        assert await produce(broker, batch(producer), batch(producer)) == [ErrorCode.NONE] * 2
        [record] = broker.services.transactions.coordinator
        assert record.partitions == {("orders", 0), ("orders", 1)}
        written = broker.services.shards.writer.transactions
        assert await produce(broker, batch(producer, 1)) == [ErrorCode.NONE]
        assert broker.services.shards.writer.transactions == written

    run_with_broker(body)


def test_verification_of_classic_producers_can_be_disabled():
    async def body(broker):
        await broker.topic("orders", 3, max_message_bytes="4000000")
        producer = await broker.begin(ID)
        assert await produce(broker, batch(producer), version=CLASSIC) == [ErrorCode.NONE]

    config = Config(s3=S3(use_memory=True), transaction=Transaction(partition_verification=False))
    run_with_broker(body, config=config)


def test_request_without_a_transactional_id_is_denied():
    async def body(broker):
        await broker.topic("orders", 3, max_message_bytes="4000000")
        producer = await broker.begin(ID, ("orders", 0))
        batches = [batch(producer), batch((99, 0), transactional=False)]
        assert await produce(broker, *batches, transactional_id=None) == [
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ErrorCode.NONE,
        ]

    run_with_broker(body)
