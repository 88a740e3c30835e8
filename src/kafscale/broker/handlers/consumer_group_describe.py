"""ConsumerGroupDescribe: v0-1.

Behaviour:
* Groups of the consumer protocol only. A classic group is answered like one that does not exist:
  GROUP_ID_NOT_FOUND, on which Kafka's tools send DescribeGroups. An empty group id is
  INVALID_GROUP_ID.
* A member has its current and its target assignment; deleted topics are left out.
* Requires DESCRIBE on each group, else GROUP_AUTHORIZATION_FAILED; and on every topic that its
  members are assigned, else the group is TOPIC_AUTHORIZATION_FAILED.

Version notes:
* v1+: whether a member uses the classic protocol, in a group that is being migrated.
"""

from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security import authorization
from kafscale.broker.shared.groups import check_group_id
from kafscale.errors import GroupNotFoundError, KafscaleError, TopicAuthorizationError
from kafscale.groups.model import GroupRecord, GroupType, MemberRecord, Partitions
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    DescribedMember,
    TopicPartitions,
)

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


def handle(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[_describe(context, request, group_id) for group_id in request.group_ids]
    )


def error_response(
    _context: RequestContext, request: ConsumerGroupDescribeRequest, error: KafscaleError
) -> ConsumerGroupDescribeResponse:
    """The same error for every group."""
    return ConsumerGroupDescribeResponse(
        groups=[_failed(group_id, error) for group_id in request.group_ids]
    )


def _describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest, group_id: str
) -> DescribedGroup:
    operations = authorization.OPERATIONS_NOT_REQUESTED
    try:
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
        group = _described(context, _find(context, group_id))
        _check_topics(context, group)
    except KafscaleError as error:
        return _failed(group_id, error)
    if request.include_authorized_operations:
        operations = authorization.authorized_operations(context, ResourceType.GROUP, group_id)
    group.authorized_operations = operations
    return group


def _check_topics(context: RequestContext, group: DescribedGroup) -> None:
    """Raise if the group reads topics that the client may not describe."""
    if context.broker.authorizer is None:
        return
    names = {
        topic.name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.assigned_partitions
    }
    if not all(
        context.is_authorized(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names
    ):
        raise TopicAuthorizationError(
            "The group has described topic(s) that the client is not authorized to describe."
        )


def _find(context: RequestContext, group_id: str) -> GroupRecord:
    check_group_id(group_id)
    record = context.broker.groups.describe(group_id)
    if record.group_type is not GroupType.CONSUMER:
        raise GroupNotFoundError(f"Group {group_id} is not a consumer group.")
    return record


def _described(context: RequestContext, record: GroupRecord) -> DescribedGroup:
    return DescribedGroup(
        group_id=record.group_id,
        group_state=record.state,
        group_epoch=record.generation,
        assignment_epoch=record.assignment_epoch,
        assignor_name=record.protocol,
        members=[_member(context, member) for member in record.members.values()],
    )


def _member(context: RequestContext, member: MemberRecord) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_names),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment(context, member.assigned),
        target_assignment=_assignment(context, member.target),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(context: RequestContext, assigned: Partitions) -> Assignment:
    find = context.broker.topic_store.find_by_id
    return Assignment(
        [
            TopicPartitions(topic_id, topic.name, sorted(numbers))
            for topic_id, numbers in assigned.items()
            if (topic := find(topic_id)) is not None
        ]
    )


def _failed(group_id: str, error: KafscaleError) -> DescribedGroup:
    return DescribedGroup(error_code=error.code, error_message=str(error), group_id=group_id)
