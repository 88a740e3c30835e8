"""JoinGroup: v0-9.

Behaviour:
* The response waits until the next generation begins: when all members have joined, or after the
  rebalance timeout. A client that disconnects meanwhile stays a member until its session ends.
* A new member gets an id that begins with its instance id or client id. An error response carries
  the member's id, or with MEMBER_ID_REQUIRED the one to join with.
* An empty group id is INVALID_GROUP_ID.
* Requires READ on the group, else GROUP_AUTHORIZATION_FAILED.

Version notes:
* v0: the session timeout is the rebalance timeout as well.
* v4+: a new member joins twice, first without an id; except for static members (v5+).
* v7+: without a protocol, its name is null; before, it is empty.
* v9+: a static leader that rejoins may be asked to skip the assignment.
"""

from collections.abc import Awaitable

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.groups import (
    check_group_id,
    client_host,
    client_id,
    new_member_id,
    respond_when_done,
)
from kafscale.errors import KafscaleError, MemberIdRequiredError
from kafscale.groups.effects import NO_REPLY_TOKEN, Joined
from kafscale.groups.events import Join
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.join_group import JoinedMember, JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_SINCE = 4
NULL_PROTOCOL_SINCE = 7
SKIPPED_ASSIGNMENT_SINCE = 9


def handle(
    context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    check_group_id(request.group_id)
    instance_id = request.group_instance_id
    rebalance_timeout_ms = request.rebalance_timeout_ms
    if rebalance_timeout_ms < 0:
        rebalance_timeout_ms = request.session_timeout_ms
    event = Join(
        reply_token=NO_REPLY_TOKEN,
        member_id=request.member_id,
        new_member_id=new_member_id(context, instance_id),
        instance_id=instance_id,
        client_id=client_id(context),
        client_host=client_host(context),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple((offered.name, offered.metadata) for offered in request.protocols),
        requires_known_member_id=context.version >= MEMBER_ID_REQUIRED_SINCE
        and instance_id is None,
        supports_skipping_assignment=context.version >= SKIPPED_ASSIGNMENT_SINCE,
        reason=request.reason or "",
    )
    return respond_when_done(context.broker.groups.join(request.group_id, event), _response)


def error_response(
    context: RequestContext, request: JoinGroupRequest, error: KafscaleError
) -> JoinGroupResponse:
    member_id = request.member_id
    if isinstance(error, MemberIdRequiredError):
        member_id = error.member_id
    return JoinGroupResponse(
        error_code=error.code,
        protocol_name=None if context.version >= NULL_PROTOCOL_SINCE else "",
        member_id=member_id,
    )


def _response(joined: Joined) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinedMember(member.member_id, member.instance_id, member.metadata)
            for member in joined.members
        ],
    )
