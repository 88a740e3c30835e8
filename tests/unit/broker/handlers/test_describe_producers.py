"""DescribeProducers: the idempotent producers of a partition."""

from doubles import virtual_time
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    ActiveProducer,
    DescribeProducersRequest,
    TopicToDescribe,
)
from unit.broker.in_memory_broker import run_with_broker


def test_partition_lists_its_idempotent_producers():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1000)
        await broker.write("orders", 2000, producer_id=5, producer_epoch=1, base_sequence=0)
        await broker.write("orders", 3000, producer_id=5, producer_epoch=1, base_sequence=1)
        request = DescribeProducersRequest([TopicToDescribe("orders", [0])])
        response = await broker.ask(DESCRIBE_PRODUCERS, request)

        [result] = response.topics[0].partitions
        assert result.error_code == ErrorCode.NONE
        assert result.active_producers == [
            ActiveProducer(
                producer_id=5,
                producer_epoch=1,
                last_sequence=1,
                last_timestamp_ms=virtual_time.clock_ms(),
                coordinator_epoch=-1,
                transaction_start_offset=-1,
            )
        ]

    run_with_broker(body)


def test_missing_partition_is_unknown():
    async def body(broker):
        await broker.topic("orders")
        requested = [TopicToDescribe("orders", [0, 1]), TopicToDescribe("missing", [0])]
        response = await broker.ask(DESCRIBE_PRODUCERS, DescribeProducersRequest(requested))

        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [
            (topic.name, result.index, result.error_code, bool(result.error_message))
            for topic in response.topics
            for result in topic.partitions
        ] == [
            ("orders", 0, ErrorCode.NONE, False),
            ("orders", 1, unknown, True),
            ("missing", 0, unknown, True),
        ]

    run_with_broker(body)
