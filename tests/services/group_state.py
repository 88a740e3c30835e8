"""Reads the state of a group from its coordinator, for classic and consumer groups alike."""

from typing import NamedTuple

from kafscale.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from services.wire import Wire

GENERATIONS_MAX = 50
NO_ERROR, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS = 0, 22, 27


class GroupState(NamedTuple):
    """A snapshot of a group; two snapshots are equal if nothing happened in between."""

    state: str
    generation: int
    members: frozenset[str]


def describe_group_state(port: int, group: str, *, is_classic: bool) -> GroupState:
    with Wire(port) as wire:
        return _classic(wire, group) if is_classic else _consumer(wire, group)


def _consumer(wire: Wire, group: str) -> GroupState:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    (described,) = wire.call(CONSUMER_GROUP_DESCRIBE, 1, request).groups
    assert described.error_code == 0, described
    members = frozenset(member.member_id for member in described.members)
    return GroupState(described.group_state, described.group_epoch, members)


def _classic(wire: Wire, group: str) -> GroupState:
    (described,) = wire.call(DESCRIBE_GROUPS, 5, DescribeGroupsRequest(group_ids=[group])).groups
    assert described.error_code == 0, described
    members = frozenset(member.member_id for member in described.members)
    return GroupState(described.group_state, _generation(wire, group, members), members)


def _generation(wire: Wire, group: str, members: frozenset[str]) -> int:
    """No API returns the generation: probe for the one whose heartbeat is accepted."""
    if not members:
        return 0
    for generation in range(1, GENERATIONS_MAX):
        request = HeartbeatRequest(group, generation, min(members))
        code = wire.call(HEARTBEAT, 4, request).error_code
        if code in (NO_ERROR, REBALANCE_IN_PROGRESS):
            return generation
        assert code == ILLEGAL_GENERATION, code
    raise AssertionError(f"{group} has no generation below {GENERATIONS_MAX}")
