"""ListPartitionReassignments: nothing moves."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
    TopicToList,
)
from unit.broker.handlers.serving import serve


@pytest.mark.parametrize("topics", [None, [TopicToList("orders", [0])]])
def test_no_partition_is_on_its_way(topics):
    async def body(broker):
        await broker.topic("orders")
        request = ListPartitionReassignmentsRequest(topics=topics)
        response = await broker.ask(LIST_PARTITION_REASSIGNMENTS, request)

        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert response.topics == []

    serve(body)
