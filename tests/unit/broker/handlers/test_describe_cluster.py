"""DescribeCluster: one broker, at the address that the client can reach."""

import pytest

from kafscale.broker.security.authorization import ALL_OPERATIONS
from kafscale.metadata.access.model import ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_cluster import (
    DESCRIBE_CLUSTER,
    Broker,
    DescribeClusterRequest,
)
from unit.broker.in_memory_broker import CLUSTER_ID, NODE_ID, run_with_broker

OPERATIONS_NOT_REQUESTED = -0x8000_0000


@pytest.mark.parametrize("version", DESCRIBE_CLUSTER.versions)
@pytest.mark.parametrize(
    ("is_requested", "expected"),
    [(False, OPERATIONS_NOT_REQUESTED), (True, ALL_OPERATIONS[ResourceType.CLUSTER])],
)
def test_cluster_has_this_broker(version, is_requested, expected):
    async def body(broker):
        request = DescribeClusterRequest(include_cluster_authorized_operations=is_requested)
        response = await broker.ask(DESCRIBE_CLUSTER, request, version)

        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert (response.cluster_id, response.controller_id) == (CLUSTER_ID, NODE_ID)
        assert response.brokers == [Broker(NODE_ID, "10.0.0.9", 9092)]
        assert response.cluster_authorized_operations == expected

    run_with_broker(body)


@pytest.mark.parametrize("version", range(1, DESCRIBE_CLUSTER.version_max + 1))
@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_controller_endpoints_are_refused(version, endpoint_type, code):
    async def body(broker):
        request = DescribeClusterRequest(endpoint_type=endpoint_type)
        response = await broker.ask(DESCRIBE_CLUSTER, request, version)

        assert (response.error_code, response.brokers) == (code, [])
        assert response.error_message

    run_with_broker(body)
