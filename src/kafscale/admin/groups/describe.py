"""What a coordinator tells about a group and its members, as plain data, of either protocol.

A group is asked for in the new protocol first, as Kafka's tools do (KIP-848): the coordinator says
at once if it knows none of this name, and then it is a classic one, or none at all.
"""

from typing import Any

from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import AnsweredError, check
from kafscale.errors import ProtocolError
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from kafscale.groups.model import Kind
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages import consumer_group_describe, describe_groups
from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest

Data = dict[str, Any]

DEAD = "Dead"
HINT = "see which there are with: kafscale group list"


async def description(coordinator: Coordinator) -> Data:
    """The group with its members; an error says that there is none."""
    described = await _consumer_group(coordinator) or await _classic_group(coordinator)
    return {
        "group": coordinator.group_id,
        **described,
        "coordinator": {"id": coordinator.node_id, "address": str(coordinator.address)},
    }


def assigned_to(members: list[Data]) -> dict[tuple[str, int], Data]:
    """Which member reads which partition."""
    return {
        (topic, partition): member
        for member in members
        for topic, partitions in member["assignment"].items()
        for partition in partitions
    }


async def _consumer_group(coordinator: Coordinator) -> Data | None:
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
    return {
        "type": Kind.CONSUMER.value,
        "state": group.group_state,
        "protocolType": PROTOCOL_TYPE,
        "assignor": group.assignor_name,
        "epoch": group.group_epoch,
        "members": [
            {
                **_identity(member),
                "epoch": member.member_epoch,
                "topics": list(member.subscribed_topic_names),
                "topicRegex": member.subscribed_topic_regex or None,
                "assignment": _by_topic(member.assignment),
                "target": _by_topic(member.target_assignment),
            }
            for member in group.members
        ],
    }


async def _classic_group(coordinator: Coordinator) -> Data:
    request = DescribeGroupsRequest(group_ids=[coordinator.group_id])
    response = await coordinator.ask(
        DESCRIBE_GROUPS, request, lambda each: each.groups[0].error_code
    )
    (group,) = response.groups
    check(f"group {coordinator.group_id}", group.error_code, hint=_hint(group.error_code))
    if group.group_state == DEAD and not group.members:
        # Before v6, this is how it is said that there is no such group.
        raise AnsweredError(
            f"group {coordinator.group_id}", ErrorCode.GROUP_ID_NOT_FOUND, hint=HINT
        )
    return {
        "type": Kind.CLASSIC.value,
        "state": group.group_state,
        "protocolType": group.protocol_type,
        "assignor": group.protocol_name,
        "epoch": None,
        "members": [
            {**_identity(member), **_reading(member, group.protocol_type)}
            for member in group.members
        ],
    }


def _identity(
    member: consumer_group_describe.DescribedMember | describe_groups.DescribedMember,
) -> Data:
    return {
        "memberId": member.member_id,
        "instanceId": member.group_instance_id,
        "clientId": member.client_id,
        # Java writes addresses with a slash where a name could stand.
        "host": member.client_host.removeprefix("/"),
    }


def _reading(member: describe_groups.DescribedMember, protocol_type: str) -> Data:
    """What a classic member reads, where it says so in the way of consumers."""
    topics: tuple[str, ...] = ()
    assignment: dict[str, tuple[int, ...]] = {}
    if protocol_type == PROTOCOL_TYPE:
        try:
            topics = decode_subscription(member.metadata).topics if member.metadata else ()
            assignment = decode_assignment(member.assignment)
        except ProtocolError:
            pass  # Only its own kind can read it; that it is a member is known all the same.
    return {
        "topics": list(topics),
        "assignment": {topic: sorted(each) for topic, each in sorted(assignment.items())},
    }


def _by_topic(assignment: consumer_group_describe.Assignment) -> dict[str, list[int]]:
    return {
        topic.name: sorted(topic.partitions)
        for topic in sorted(assignment.assigned_partitions, key=lambda each: each.name)
    }


def _hint(code: int) -> str:
    return HINT if code == ErrorCode.GROUP_ID_NOT_FOUND else ""
