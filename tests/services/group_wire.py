"""What the coordinator has of a group, asked over the wire: of either kind of group the same."""

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


class Standing(NamedTuple):
    """A group at one moment; the same one again when nothing has happened between."""

    state: str
    generation: int
    members: frozenset[str]


def standing(port: int, group: str, *, is_classic: bool) -> Standing:
    with Wire(port) as wire:
        return _classic(wire, group) if is_classic else _consumer(wire, group)


def _consumer(wire: Wire, group: str) -> Standing:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    (found,) = wire.call(CONSUMER_GROUP_DESCRIBE, 1, request).groups
    assert found.error_code == 0, found
    members = frozenset(member.member_id for member in found.members)
    return Standing(found.group_state, found.group_epoch, members)


def _classic(wire: Wire, group: str) -> Standing:
    (found,) = wire.call(DESCRIBE_GROUPS, 5, DescribeGroupsRequest(group_ids=[group])).groups
    assert found.error_code == 0, found
    members = frozenset(member.member_id for member in found.members)
    return Standing(found.group_state, _generation(wire, group, members), members)


def _generation(wire: Wire, group: str, members: frozenset[str]) -> int:
    """Nobody tells it to strangers: it is the one for which a member's heartbeat is accepted."""
    if not members:
        return 0
    for generation in range(1, GENERATIONS_MAX):
        request = HeartbeatRequest(group, generation, min(members))
        code = wire.call(HEARTBEAT, 4, request).error_code
        if code in (NO_ERROR, REBALANCE_IN_PROGRESS):
            return generation
        assert code == ILLEGAL_GENERATION, code
    raise AssertionError(f"{group} has no generation below {GENERATIONS_MAX}")
