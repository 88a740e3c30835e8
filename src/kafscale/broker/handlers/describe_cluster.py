"""DescribeCluster: v0-2.

Behaviour:
* The cluster id, the controller, and all live brokers; this one at the address that the client can
  reach.
* Requires no permission. Authorized operations on the cluster are returned to clients that may
  DESCRIBE it, and are empty for others.
* There are no controller endpoints: a request for them is refused, as by Kafka's brokers.

Version notes:
* v1+: the requested endpoint type. v2+: fenced brokers, of which there are none.
"""

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


def handle(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an"
            " endpoint of type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    operations = authorization.OPERATIONS_NOT_REQUESTED
    if request.include_cluster_authorized_operations:
        operations = authorization.authorized_cluster_operations(context)
    return DescribeClusterResponse(
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.cluster.controller_id,
        brokers=[
            Broker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes(context)
        ],
        cluster_authorized_operations=operations,
    )
