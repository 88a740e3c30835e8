"""DescribeCluster (60): the cluster's id, its nodes, and what the client may do with it (KIP-700).

Version notes:
* v0: flexible from the start.
* v1: brokers or controllers may be requested (KIP-919).
* v2: brokers that are fenced, if requested (KIP-1073).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int8, Int16, Int32, Message, String, since


class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: Boolean = False
    endpoint_type: Annotated[Int8, since(1)] = 1
    """1: brokers, 2: controllers."""
    include_fenced_brokers: Annotated[Boolean, since(2)] = False


class Broker(Message):
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None
    is_fenced: Annotated[Boolean, since(2)] = False


class DescribeClusterResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Annotated[Int8, since(1)] = 1
    """1: brokers, 2: controllers."""
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: list[Broker] = []
    cluster_authorized_operations: Int32 = -0x8000_0000
    """One bit per operation; the default means that they were not requested."""


DESCRIBE_CLUSTER = Api(
    60, "DescribeCluster", DescribeClusterRequest, DescribeClusterResponse, 2, flexible_since=0
)
