"""DescribeCluster: v0-2.

Behaviour:
* The cluster's id, its controller, and all brokers that are alive; this one at the address under
  which the client reaches it.
* Everybody may ask. What one may do to the cluster is told to those who may DESCRIBE it; others may
  do nothing.
* There are no endpoints of controllers: who asks for those here is told so, as by a broker of
  Kafka's.

Version notes:
* v1+: the type of endpoints that is asked for. v2+: fenced brokers, which there are none of.
"""

from typing import Final

from kafscale.broker.network.advertised import nodes
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security import authorization
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_cluster import (
    Broker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2

_REFUSED: Final = {CONTROLLERS: ErrorCode.MISMATCHED_ENDPOINT_TYPE}


def handle(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        code = _REFUSED.get(request.endpoint_type, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)
        return DescribeClusterResponse(
            error_code=code,
            error_message=f"This is an endpoint of type {BROKERS}, a broker's;"
            f" the request wants type {request.endpoint_type}.",
        )
    allowed = authorization.OPERATIONS_NOT_REQUESTED
    if request.include_cluster_authorized_operations:
        allowed = authorization.authorized_cluster_operations(context)
    return DescribeClusterResponse(
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.cluster.controller_id,
        brokers=[
            Broker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes(context)
        ],
        cluster_authorized_operations=allowed,
    )
