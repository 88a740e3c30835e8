"""ListPartitionReassignments: v0.

Behaviour:
* None: partitions have no replicas that could be on their way to other brokers.

Version notes: there is one version.
"""

from kafscale.broker.context import RequestContext
from kafscale.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(
    _context: RequestContext, _request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)
