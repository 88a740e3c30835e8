"""AddPartitionsToTxn: which partitions can be a part of a transaction."""

import asyncio

import pytest

from kafscale.metadata.topics import names
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    TopicToAdd,
)
from kafscale.protocol.messages.end_txn import END_TXN, EndTxnRequest
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from unit.broker.handlers.metadata_writes import MetadataWrites
from unit.broker.in_memory_broker import run_with_broker


@pytest.mark.parametrize("name", sorted(names.INTERNAL))
def test_an_internal_topic_is_refused_before_it_exists(name):
    """As in Kafka, which decides by name, so that the answer depends on no earlier request."""

    async def add(broker):
        assert broker.services.topic_store.find(name) is None
        request = AddPartitionsToTxnRequest(
            transactional_id="billing", producer_id=1, topics=[TopicToAdd(name, [0])]
        )
        response = await broker.ask(ADD_PARTITIONS_TO_TXN, request, 3)
        (topic,) = response.topics
        (partition,) = topic.partitions
        assert partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    run_with_broker(add)


def test_what_is_written_counts():
    """Each request that adds partitions writes those of the whole transaction."""

    async def body(broker):
        await broker.topic("orders", 1000)
        writes = MetadataWrites(broker)
        init = InitProducerIdRequest(transactional_id="billing", transaction_timeout_ms=60_000)
        producer = await broker.ask(INIT_PRODUCER_ID, init)
        identity = {
            "transactional_id": "billing",
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
        }
        for index in range(1000):
            add = AddPartitionsToTxnRequest(**identity, topics=[TopicToAdd("orders", [index])])
            response = await broker.ask(ADD_PARTITIONS_TO_TXN, add, 3)
            assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
        ended = await broker.ask(END_TXN, EndTxnRequest(**identity, committed=True), 4)
        assert ended.error_code == ErrorCode.NONE
        await asyncio.sleep(5)
        assert writes.written_bytes < writes.charged_bytes < 3 * writes.written_bytes

    run_with_broker(body)
