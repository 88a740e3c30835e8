"""AddPartitionsToTxn: which partitions can be a part of a transaction."""

import pytest

from kafscale.metadata.topics import names
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    TopicToAdd,
)
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
