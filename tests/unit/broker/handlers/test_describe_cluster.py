"""DescribeCluster: one broker, where the client can reach it."""

import pytest

from kafscale.broker.security.authorization import ALL_CLUSTER_OPERATIONS
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_cluster import (
    DESCRIBE_CLUSTER,
    Broker,
    DescribeClusterRequest,
)
from unit.broker.handlers.serving import CLUSTER_ID, NODE_ID, serve

OPERATIONS_NOT_REQUESTED = -0x8000_0000


@pytest.mark.parametrize("version", DESCRIBE_CLUSTER.versions)
@pytest.mark.parametrize(
    ("asked", "told"), [(False, OPERATIONS_NOT_REQUESTED), (True, ALL_CLUSTER_OPERATIONS)]
)
def test_the_cluster_is_this_broker(version, asked, told):
    async def body(broker):
        request = DescribeClusterRequest(include_cluster_authorized_operations=asked)
        response = await broker.ask(DESCRIBE_CLUSTER, request, version)

        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert (response.cluster_id, response.controller_id) == (CLUSTER_ID, NODE_ID)
        assert response.brokers == [Broker(NODE_ID, "10.0.0.9", 9092)]
        assert response.cluster_authorized_operations == told

    serve(body)


@pytest.mark.parametrize("version", range(1, DESCRIBE_CLUSTER.version_max + 1))
@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_controllers_are_not_found_here(version, endpoint_type, code):
    async def body(broker):
        request = DescribeClusterRequest(endpoint_type=endpoint_type)
        response = await broker.ask(DESCRIBE_CLUSTER, request, version)

        assert (response.error_code, response.brokers) == (code, [])
        assert response.error_message

    serve(body)
