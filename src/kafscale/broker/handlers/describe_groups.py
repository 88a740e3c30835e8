"""DescribeGroups: v0-6.

Behaviour:
* Classic groups only. A group of the consumer protocol is answered like one that does not exist, on
  which Kafka's tools send ConsumerGroupDescribe.
* Member metadata is returned while the group is stable, because only then its protocol is known;
  the last assignments are always returned.
* Requires DESCRIBE on each group, else GROUP_AUTHORIZATION_FAILED.

Version notes:
* v0-5: a missing group is Dead, without an error. v6+: GROUP_ID_NOT_FOUND.
* v3+: authorized operations, on request.
* v4+: instance ids of static members.
"""

from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security import authorization
from kafscale.errors import GroupNotFoundError, KafscaleError
from kafscale.groups.model import GroupRecord, GroupType, MemberRecord
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

NOT_FOUND_SINCE: Final = 6

DEAD: Final = "Dead"
STABLE: Final = "Stable"


def handle(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[_describe(context, request, group_id) for group_id in request.group_ids]
    )


def error_response(
    _context: RequestContext, request: DescribeGroupsRequest, error: KafscaleError
) -> DescribeGroupsResponse:
    """The same error for every group."""
    return DescribeGroupsResponse(
        groups=[_failed(group_id, error) for group_id in request.group_ids]
    )


def _describe(
    context: RequestContext, request: DescribeGroupsRequest, group_id: str
) -> DescribedGroup:
    operations = authorization.OPERATIONS_NOT_REQUESTED
    try:
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
        if request.include_authorized_operations:
            operations = authorization.authorized_operations(context, ResourceType.GROUP, group_id)
        record = _find(context, group_id)
    except GroupNotFoundError as error:
        if context.version >= NOT_FOUND_SINCE:
            return _failed(group_id, error, DEAD)
        return DescribedGroup(group_id=group_id, group_state=DEAD, authorized_operations=operations)
    except KafscaleError as error:
        return _failed(group_id, error)
    return _described(record, operations)


def _find(context: RequestContext, group_id: str) -> GroupRecord:
    record = context.broker.groups.describe(group_id)
    if record.group_type is not GroupType.CLASSIC:
        raise GroupNotFoundError(f"Group {group_id} is not a classic group.")
    return record


def _described(record: GroupRecord, operations: int) -> DescribedGroup:
    protocol = record.protocol if record.state == STABLE else ""
    return DescribedGroup(
        group_id=record.group_id,
        group_state=record.state,
        protocol_type=record.protocol_type,
        protocol_name=protocol,
        members=[_member(member, protocol) for member in record.members.values()],
        authorized_operations=operations,
    )


def _member(member: MemberRecord, protocol: str) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        metadata=dict(member.protocols).get(protocol, b"") if protocol else b"",
        assignment=member.assignment,
    )


def _failed(group_id: str, error: KafscaleError, state: str = "") -> DescribedGroup:
    return DescribedGroup(
        error_code=error.code, error_message=str(error), group_id=group_id, group_state=state
    )
