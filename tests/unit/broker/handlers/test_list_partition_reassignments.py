"""ListPartitionReassignments: there are none."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
    TopicToList,
)
from unit.broker.in_memory_broker import run_with_broker


@pytest.mark.parametrize("topics", [None, [TopicToList("orders", [0])]])
def test_no_partition_is_being_reassigned(topics):
    async def body(broker):
        await broker.topic("orders")
        request = ListPartitionReassignmentsRequest(topics=topics)
        response = await broker.ask(LIST_PARTITION_REASSIGNMENTS, request)

        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert response.topics == []

    run_with_broker(body)
