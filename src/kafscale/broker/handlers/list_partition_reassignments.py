"""ListPartitionReassignments: v0.

Behaviour:
* None: partitions have no replicas that could be reassigned.
* Requires DESCRIBE on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes: there is one version.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    context: RequestContext, _request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    return ListPartitionReassignmentsResponse(error_message=None)
