"""LeaveGroup: v0-5.

Behaviour:
* Members leave at once, and the others have to rejoin. Each member succeeds or fails on its own;
  static ones may be named by their instance id alone, which is how administrators remove them.
* In a group that does not exist, every member is UNKNOWN_MEMBER_ID.
* An empty group id is INVALID_GROUP_ID.
* Requires READ on the group, else GROUP_AUTHORIZATION_FAILED.

Version notes:
* v0-2: one member, whose error is the top-level error.
* v3+: any number of members, each with its own error.
"""

from collections.abc import Awaitable, Sequence
from functools import partial

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.groups import check_group_id, group_error_code, respond_when_done
from kafscale.errors import KafscaleError, UnknownMemberError
from kafscale.groups.effects import NO_REPLY_TOKEN, Left
from kafscale.groups.events import Leave, MemberIdentity
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.leave_group import (
    DepartedMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
)

BATCHES_SINCE = 3


def handle(
    context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    check_group_id(request.group_id)
    leavers = tuple(
        MemberIdentity(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            reason=member.reason or "",
        )
        for member in _members(context, request)
    )
    left = context.broker.groups.leave(
        request.group_id, Leave(reply_token=NO_REPLY_TOKEN, members=leavers)
    )
    return respond_when_done(left, partial(_response, context))


def error_response(
    context: RequestContext, request: LeaveGroupRequest, error: KafscaleError
) -> LeaveGroupResponse:
    if context.version >= BATCHES_SINCE and isinstance(error, UnknownMemberError):
        members = [
            DepartedMember(member.member_id, member.group_instance_id, error.code)
            for member in request.members
        ]
        return LeaveGroupResponse(members=members)
    return LeaveGroupResponse(error_code=group_error_code(error))


def _members(context: RequestContext, request: LeaveGroupRequest) -> Sequence[LeavingMember]:
    if context.version >= BATCHES_SINCE:
        return request.members
    return [LeavingMember(request.member_id)]


def _response(context: RequestContext, left: Left) -> LeaveGroupResponse:
    members = [
        DepartedMember(member_id, instance_id, error.code if error else 0)
        for member_id, instance_id, error in left.members
    ]
    if context.version >= BATCHES_SINCE:
        return LeaveGroupResponse(members=members)
    [only] = members
    return LeaveGroupResponse(error_code=only.error_code)
