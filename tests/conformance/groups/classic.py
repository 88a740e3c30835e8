"""What members of classic groups say, in few words; in the newest version, unless another is."""

from collections.abc import Mapping
from typing import Any, Final

from conformance.groups.codes import Code
from conformance.groups.duet import Answer, Differently, Duet
from kafscale.groups.consumer_protocol import Subscription, encode_subscription
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest, OfferedProtocol
from kafscale.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, LeavingMember
from kafscale.protocol.messages.sync_group import SYNC_GROUP, MemberAssignment, SyncGroupRequest

Protocols = Mapping[str, bytes]


def wish(*topics: str) -> bytes:
    """What a consumer tells its leader that it wants to read.

    Kafka reads this, too, and falls silent on some bytes that are no such thing: it makes room for
    as many topics as they announce.
    """
    return encode_subscription(Subscription(topics))


RANGE: Final[Protocols] = {"range": wish("three")}
OTHER_WISH: Final[Protocols] = {"range": wish("one")}


# --- joining ------------------------------------------------------------------------------------


def join(
    talk: Duet, version: int = 9, *, on: str = "first", ours: Differently | None = None, **said: Any
) -> Answer:
    begin_join(talk, version, on=on, **said)
    return talk.receive(on, ours=ours)


def begin_join(talk: Duet, version: int = 9, *, on: str, **said: Any) -> None:
    talk.send(JOIN_GROUP, version, join_request(talk, **said), on=on)


def join_request(
    talk: Duet,
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
        group_id=talk.group if group is None else group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[OfferedProtocol(name, data) for name, data in protocols.items()],
    )


def first_member(talk: Duet, version: int = 9, **said: Any) -> Answer:
    """What the first member of a group is told in the end, which leads it."""
    answer = join(talk, version, **said)
    if answer.error_code == Code.MEMBER_ID_REQUIRED:
        answer = join(talk, version, member=answer.member_id, **said)
    assert answer.error_code == Code.NONE
    return answer


def promised_id(talk: Duet, **said: Any) -> str:
    """The id that a further member is to join with."""
    answer = join(talk, **said)
    assert answer.error_code == Code.MEMBER_ID_REQUIRED
    return str(answer.member_id)


# --- being a member -----------------------------------------------------------------------------


def sync(talk: Duet, version: int = 5, *, on: str = "first", **said: Any) -> Answer:
    begin_sync(talk, version, on=on, **said)
    return talk.receive(on)


def begin_sync(talk: Duet, version: int = 5, *, on: str, **said: Any) -> None:
    talk.send(SYNC_GROUP, version, sync_request(talk, **said), on=on)


def sync_request(
    talk: Duet,
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
        group_id=talk.group if group is None else group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocol_name=protocol,
        assignments=[MemberAssignment(whose, what) for whose, what in (assigned or {}).items()],
    )


def stable_member(talk: Duet, *, group: str | None = None, **said: Any) -> str:
    """The one member of a group in its first generation."""
    member = str(first_member(talk, group=group, **said).member_id)
    synced = sync(talk, group=group, member=member, assigned={member: b"what it gets"})
    assert synced.error_code == Code.NONE
    return member


def stable_pair(talk: Duet, **said: Any) -> tuple[str, str]:
    """Leader and follower of a group in its second generation, with a connection each."""
    leader = stable_member(talk, **said)
    follower = promised_id(talk, on="second", **said)
    begin_join(talk, on="second", member=follower, **said)
    wait_for(talk, "PreparingRebalance", members=2)
    assert join(talk, member=leader, **said).error_code == Code.NONE
    assert talk.receive("second").error_code == Code.NONE
    begin_sync(talk, on="second", member=follower, generation=2)
    assigned = {leader: b"the leader's", follower: b"the follower's"}
    assert sync(talk, member=leader, generation=2, assigned=assigned).error_code == Code.NONE
    assert talk.receive("second").assignment == b"the follower's"
    return leader, follower


def heartbeat(
    talk: Duet,
    version: int = 4,
    *,
    member: str,
    generation: int = 1,
    instance: str | None = None,
    group: str | None = None,
) -> int:
    group = talk.group if group is None else group
    request = HeartbeatRequest(group, generation, member, instance)
    return int(talk.call(HEARTBEAT, version, request).error_code)


# --- leaving ------------------------------------------------------------------------------------


def leave(talk: Duet, *members: tuple[str, str | None], group: str | None = None) -> Answer:
    """What is said of members with an id, an instance, or both that are to leave together."""
    leaving = [LeavingMember(member, instance, "because") for member, instance in members]
    request = LeaveGroupRequest(talk.group if group is None else group, members=leaving)
    return talk.call(LEAVE_GROUP, 5, request)


# --- looking on ---------------------------------------------------------------------------------


def describe(talk: Duet, version: int = 6, *groups: str) -> Answer:
    request = DescribeGroupsRequest(list(groups) or [talk.group])
    return talk.call(DESCRIBE_GROUPS, version, request)


def wait_until_empty(talk: Duet, group: str | None = None) -> None:
    """In Kafka a group is still in a rebalance for a moment after its last member has left."""
    wait_for(talk, "Empty", members=0, group=group)


def wait_for(talk: Duet, state: str, *, members: int, group: str | None = None) -> None:
    """Until a group is in a state, with so many members: then a request has been received."""

    def is_so(answer: Answer) -> bool:
        (found,) = answer.groups
        return found.group_state == state and len(found.members) == members

    request = DescribeGroupsRequest([talk.group if group is None else group])
    talk.wait_until(DESCRIBE_GROUPS, 5, request, is_so)
