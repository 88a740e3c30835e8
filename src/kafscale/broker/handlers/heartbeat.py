"""Heartbeat: v0-4.

Behaviour:
* Keeps a member of a classic group alive; REBALANCE_IN_PROGRESS makes it rejoin. Nothing is
  written, and the response is immediate.
* While the group is being loaded, every member counts as alive, as in Kafka: Java's consumers know
  no error for this case here, and would give up.
* An empty group id is INVALID_GROUP_ID.
* Requires READ on the group, else GROUP_AUTHORIZATION_FAILED.

Version notes: all versions behave alike.
"""

from collections.abc import Awaitable

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.groups import check_group_id, respond_when_done
from kafscale.errors import CoordinatorLoadingError
from kafscale.groups.effects import NO_REPLY_TOKEN, Alive
from kafscale.groups.events import Heartbeat
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(
    context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    check_group_id(request.group_id)
    event = Heartbeat(
        reply_token=NO_REPLY_TOKEN,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
    )
    try:
        alive = context.broker.groups.heartbeat(request.group_id, event)
    except CoordinatorLoadingError:
        return HeartbeatResponse()
    return respond_when_done(alive, _response)


def _response(_alive: Alive) -> HeartbeatResponse:
    return HeartbeatResponse()
