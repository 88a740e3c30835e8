"""Requests of classic members, in short form; in the newest version by default."""

from collections.abc import Mapping
from typing import Any, Final

from conformance.groups.codes import Code
from conformance.groups.comparison import ComparisonClient, ExpectedDifference, Response
from kafscale.groups.consumer_protocol import Subscription, encode_subscription
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest, OfferedProtocol
from kafscale.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, LeavingMember
from kafscale.protocol.messages.sync_group import SYNC_GROUP, MemberAssignment, SyncGroupRequest

Protocols = Mapping[str, bytes]


def subscription(*topics: str) -> bytes:
    """The subscription that a consumer sends to its leader.

    Kafka decodes it, too, and hangs on some invalid bytes: it allocates as many topics as they
    announce.
    """
    return encode_subscription(Subscription(topics))


RANGE: Final[Protocols] = {"range": subscription("three")}
OTHER_SUBSCRIPTION: Final[Protocols] = {"range": subscription("one")}


# --- joining ------------------------------------------------------------------------------------


def join(
    client: ComparisonClient,
    version: int = 9,
    *,
    on: str = "first",
    ours: ExpectedDifference | None = None,
    **fields: Any,
) -> Response:
    send_join(client, version, on=on, **fields)
    return client.receive(on, ours=ours)


def send_join(client: ComparisonClient, version: int = 9, *, on: str, **fields: Any) -> None:
    client.send(JOIN_GROUP, version, join_request(client, **fields), on=on)


def join_request(
    client: ComparisonClient,
    *,
    member: str = "",
    instance: str | None = None,
    protocols: Protocols = RANGE,
    protocol_type: str = "consumer",
    session_ms: int = 20_000,
    rebalance_ms: int = 20_000,
    group: str | None = None,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=client.group if group is None else group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[OfferedProtocol(name, data) for name, data in protocols.items()],
    )


def first_member(client: ComparisonClient, version: int = 9, **fields: Any) -> Response:
    """The response to the first member of a group, which becomes its leader."""
    response = join(client, version, **fields)
    if response.error_code == Code.MEMBER_ID_REQUIRED:
        response = join(client, version, member=response.member_id, **fields)
    assert response.error_code == Code.NONE
    return response


def pending_member_id(client: ComparisonClient, **fields: Any) -> str:
    """The id with which a further member has to join."""
    response = join(client, **fields)
    assert response.error_code == Code.MEMBER_ID_REQUIRED
    return str(response.member_id)


# --- syncing ------------------------------------------------------------------------------------


def sync(
    client: ComparisonClient, version: int = 5, *, on: str = "first", **fields: Any
) -> Response:
    send_sync(client, version, on=on, **fields)
    return client.receive(on)


def send_sync(client: ComparisonClient, version: int = 5, *, on: str, **fields: Any) -> None:
    client.send(SYNC_GROUP, version, sync_request(client, **fields), on=on)


def sync_request(
    client: ComparisonClient,
    *,
    member: str,
    generation: int = 1,
    instance: str | None = None,
    protocol_type: str | None = "consumer",
    protocol: str | None = "range",
    assigned: Mapping[str, bytes] | None = None,
    group: str | None = None,
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=client.group if group is None else group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocol_name=protocol,
        assignments=[MemberAssignment(whose, what) for whose, what in (assigned or {}).items()],
    )


def stable_member(client: ComparisonClient, *, group: str | None = None, **fields: Any) -> str:
    """The only member of a group in its first generation."""
    member = str(first_member(client, group=group, **fields).member_id)
    synced = sync(client, group=group, member=member, assigned={member: b"what it gets"})
    assert synced.error_code == Code.NONE
    return member


def stable_pair(client: ComparisonClient, **fields: Any) -> tuple[str, str]:
    """Leader and follower of a group in its second generation, with a connection each."""
    leader = stable_member(client, **fields)
    follower = pending_member_id(client, on="second", **fields)
    send_join(client, on="second", member=follower, **fields)
    wait_for(client, "PreparingRebalance", members=2)
    assert join(client, member=leader, **fields).error_code == Code.NONE
    assert client.receive("second").error_code == Code.NONE
    send_sync(client, on="second", member=follower, generation=2)
    assigned = {leader: b"the leader's", follower: b"the follower's"}
    assert sync(client, member=leader, generation=2, assigned=assigned).error_code == Code.NONE
    assert client.receive("second").assignment == b"the follower's"
    return leader, follower


def heartbeat(
    client: ComparisonClient,
    version: int = 4,
    *,
    member: str,
    generation: int = 1,
    instance: str | None = None,
    group: str | None = None,
) -> int:
    group = client.group if group is None else group
    request = HeartbeatRequest(group, generation, member, instance)
    return int(client.call(HEARTBEAT, version, request).error_code)


# --- leaving ------------------------------------------------------------------------------------


def leave(
    client: ComparisonClient, *members: tuple[str, str | None], group: str | None = None
) -> Response:
    """The response when members with an id, an instance, or both leave together."""
    leaving = [LeavingMember(member, instance, "because") for member, instance in members]
    request = LeaveGroupRequest(client.group if group is None else group, members=leaving)
    return client.call(LEAVE_GROUP, 5, request)


# --- describing ---------------------------------------------------------------------------------


def describe(client: ComparisonClient, version: int = 6, *groups: str) -> Response:
    request = DescribeGroupsRequest(list(groups) or [client.group])
    return client.call(DESCRIBE_GROUPS, version, request)


def wait_until_empty(client: ComparisonClient, group: str | None = None) -> None:
    """In Kafka a group is still rebalancing for a moment after its last member has left."""
    wait_for(client, "Empty", members=0, group=group)


def wait_for(
    client: ComparisonClient, state: str, *, members: int, group: str | None = None
) -> None:
    """Wait for a state and number of members, which show that a request was received."""

    def condition(response: Response) -> bool:
        (result,) = response.groups
        return result.group_state == state and len(result.members) == members

    request = DescribeGroupsRequest([client.group if group is None else group])
    client.wait_until(DESCRIBE_GROUPS, 5, request, condition)
