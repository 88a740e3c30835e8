"""Describes a group and its members, of either protocol.

As in Kafka's tools, the request for the new protocol (KIP-848) is sent first. If the coordinator
knows no such group, it is a classic group or does not exist.
"""

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, UnsetType

from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import BrokerResponseError, check
from kafscale.errors import ProtocolError
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from kafscale.groups.model import GroupType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages import consumer_group_describe, describe_groups
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.text.topic_partition import TopicPartition

DEAD = "Dead"
HINT = "list the groups with: kafscale group list"


class GroupMember(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A member; `epoch`, `topic_regex` and `target` exist only in the new protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    epoch: int | UnsetType = UNSET
    topics: list[str]
    topic_regex: str | UnsetType | None = UNSET
    assignment: dict[str, list[int]]
    target: dict[str, list[int]] | UnsetType = UNSET


class GroupCoordinator(msgspec.Struct, frozen=True):
    id: int
    address: str


class GroupDescription(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    group: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    epoch: int | None
    members: list[GroupMember]
    coordinator: GroupCoordinator


async def describe_group(coordinator: Coordinator) -> GroupDescription:
    """Describe a group with its members; raises an error if it does not exist."""
    return await _consumer_group(coordinator) or await _classic_group(coordinator)


def partition_assignments(members: Iterable[GroupMember]) -> dict[TopicPartition, GroupMember]:
    """The member that each partition is assigned to."""
    return {
        (topic, partition): member
        for member in members
        for topic, partitions in member.assignment.items()
        for partition in partitions
    }


async def _consumer_group(coordinator: Coordinator) -> GroupDescription | None:
    if not await coordinator.serves(CONSUMER_GROUP_DESCRIBE):
        return None
    request = ConsumerGroupDescribeRequest(group_ids=[coordinator.group_id])
    response = await coordinator.ask(
        CONSUMER_GROUP_DESCRIBE, request, lambda each: each.groups[0].error_code
    )
    (group,) = response.groups
    if group.error_code in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}:
        return None
    check(f"group {coordinator.group_id}", group.error_code, group.error_message)
    return GroupDescription(
        group=coordinator.group_id,
        type=GroupType.CONSUMER.value,
        state=group.group_state,
        protocol_type=PROTOCOL_TYPE,
        assignor=group.assignor_name,
        epoch=group.group_epoch,
        members=[
            GroupMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                host=_host(member),
                epoch=member.member_epoch,
                topics=list(member.subscribed_topic_names),
                topic_regex=member.subscribed_topic_regex or None,
                assignment=_by_topic(member.assignment),
                target=_by_topic(member.target_assignment),
            )
            for member in group.members
        ],
        coordinator=_coordinator(coordinator),
    )


async def _classic_group(coordinator: Coordinator) -> GroupDescription:
    request = DescribeGroupsRequest(group_ids=[coordinator.group_id])
    response = await coordinator.ask(
        DESCRIBE_GROUPS, request, lambda each: each.groups[0].error_code
    )
    (group,) = response.groups
    check(f"group {coordinator.group_id}", group.error_code, hint=_hint(group.error_code))
    if group.group_state == DEAD and not group.members:
        # Before v6, a group that does not exist is described as dead.
        raise BrokerResponseError(
            f"group {coordinator.group_id}", ErrorCode.GROUP_ID_NOT_FOUND, hint=HINT
        )
    return GroupDescription(
        group=coordinator.group_id,
        type=GroupType.CLASSIC.value,
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_name,
        epoch=None,
        members=[_classic_member(member, group.protocol_type) for member in group.members],
        coordinator=_coordinator(coordinator),
    )


def _classic_member(member: describe_groups.DescribedMember, protocol_type: str) -> GroupMember:
    """A classic member; its topics are known only if it uses the consumer protocol."""
    topics: tuple[str, ...] = ()
    assignment: dict[str, tuple[int, ...]] = {}
    if protocol_type == PROTOCOL_TYPE:
        try:
            topics = decode_subscription(member.metadata).topics if member.metadata else ()
            assignment = decode_assignment(member.assignment)
        except ProtocolError:
            pass  # A format that only its own client can decode.
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=_host(member),
        topics=list(topics),
        assignment={topic: sorted(each) for topic, each in sorted(assignment.items())},
    )


def _host(member: consumer_group_describe.DescribedMember | describe_groups.DescribedMember) -> str:
    # Java formats addresses as `host/address`, here with an empty host.
    return member.client_host.removeprefix("/")


def _coordinator(coordinator: Coordinator) -> GroupCoordinator:
    return GroupCoordinator(coordinator.node_id, str(coordinator.address))


def _by_topic(assignment: consumer_group_describe.Assignment) -> dict[str, list[int]]:
    return {
        topic.name: sorted(topic.partitions)
        for topic in sorted(assignment.assigned_partitions, key=lambda each: each.name)
    }


def _hint(code: int) -> str:
    return HINT if code == ErrorCode.GROUP_ID_NOT_FOUND else ""
