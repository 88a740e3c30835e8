"""SyncGroup: v0-5.

Behaviour:
* The leader sends the assignments of all members, and the others wait for them: for the rebalance
  timeout, after which they have to rejoin. Assignments are passed on unchanged.
* While the group is being loaded, members have to rejoin (REBALANCE_IN_PROGRESS), as in Kafka:
  Java's consumers know no error for this case here, and would give up.
* An empty group id is INVALID_GROUP_ID.
* Requires READ on the group, else GROUP_AUTHORIZATION_FAILED.

Version notes:
* v5+: a member sends the protocol that it expects, INCONSISTENT_GROUP_PROTOCOL if it differs, and
  the response has it.
"""

from collections.abc import Awaitable

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.groups import check_group_id, respond_when_done
from kafscale.errors import (
    CoordinatorLoadingError,
    InconsistentProtocolError,
    RebalanceInProgressError,
)
from kafscale.groups.effects import NO_REPLY_TOKEN, Synced
from kafscale.groups.events import Sync
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_SINCE = 5


def handle(
    context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    if context.version >= PROTOCOL_SINCE and None in {request.protocol_type, request.protocol_name}:
        raise InconsistentProtocolError("protocol type and protocol name must be set")
    check_group_id(request.group_id)
    event = Sync(
        reply_token=NO_REPLY_TOKEN,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={assigned.member_id: assigned.assignment for assigned in request.assignments},
    )
    try:
        synced = context.broker.groups.sync(request.group_id, event)
    except CoordinatorLoadingError as loading:
        raise RebalanceInProgressError(str(loading)) from loading
    return respond_when_done(synced, _response)


def _response(synced: Synced) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=synced.assignment,
    )
