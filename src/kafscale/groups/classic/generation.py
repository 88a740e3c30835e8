"""SyncGroup, Heartbeat, and checks of commits: what members of the current generation do.

Invariant: an assignment is the leader's bytes, unchanged; no member gets it before it is stored.
"""

from kafscale.errors import (
    CoordinatorUnavailableError,
    IllegalGenerationError,
    InconsistentProtocolError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from kafscale.groups.classic.group_state import GroupState, State
from kafscale.groups.classic.member import Member
from kafscale.groups.effects import NO_REPLY_TOKEN, Alive, Synced
from kafscale.groups.events import Heartbeat, Sync


def _member_in_generation(
    group: GroupState, member_id: str, instance_id: str | None, generation: int
) -> Member:
    """The member of this generation; raises if it is not."""
    member = group.members.member_or_raise(member_id, instance_id)
    if generation != group.generation:
        raise IllegalGenerationError(f"the group is in generation {group.generation}")
    return member


# --- SyncGroup ----------------------------------------------------------------------------------


def sync_preparing(group: GroupState, event: Sync, now_ms: int) -> None:
    """Too late: the next generation is being prepared."""
    group.record_heartbeat(_member_to_sync(group, event), now_ms)
    raise RebalanceInProgressError(group.reason)


def sync_completing(group: GroupState, event: Sync, now_ms: int) -> None:
    """Followers wait for the leader. A second Sync replaces the first, as with Join."""
    member = _member_to_sync(group, event)
    group.reply(
        member.sync_reply_token, RebalanceInProgressError("the member has sent another SyncGroup")
    )
    member.sync_reply_token = event.reply_token
    member.has_synced = True
    if member.member_id != group.leader:
        return
    group.transition_to(State.STABLE, now_ms)
    for other in group.members:
        other.assignment = event.assignments.get(other.member_id, b"")
        if other.sync_reply_token != NO_REPLY_TOKEN:
            _send_assignment(group, other, other.sync_reply_token, now_ms)


def sync_stable(group: GroupState, event: Sync, now_ms: int) -> None:
    """The stored assignment, however often it is requested."""
    member = _member_to_sync(group, event)
    member.has_synced = True
    _send_assignment(group, member, event.reply_token, now_ms)


def _send_assignment(group: GroupState, member: Member, reply_token: int, now_ms: int) -> None:
    response = Synced(
        protocol_type=group.protocol_type, protocol=group.protocol, assignment=member.assignment
    )
    group.reply(reply_token, response, is_durable=True)
    member.sync_reply_token = NO_REPLY_TOKEN
    group.record_heartbeat(member, now_ms)


def _member_to_sync(group: GroupState, event: Sync) -> Member:
    """The member, which has to know the selected protocol of its generation."""
    member = _member_in_generation(group, event.member_id, event.instance_id, event.generation)
    if event.protocol_type not in {None, group.protocol_type}:
        raise InconsistentProtocolError(f"the group's protocol type is {group.protocol_type}")
    if event.protocol not in {None, group.protocol}:
        raise InconsistentProtocolError(f"the group's protocol is {group.protocol}")
    return member


# --- Heartbeat and OffsetCommit -----------------------------------------------------------------


def heartbeat(group: GroupState, event: Heartbeat, now_ms: int) -> None:
    """In a generation, also before its assignments are known."""
    member = _member_in_generation(group, event.member_id, event.instance_id, event.generation)
    group.record_heartbeat(member, now_ms)
    group.reply(event.reply_token, Alive())


def heartbeat_preparing(group: GroupState, event: Heartbeat, now_ms: int) -> None:
    """This is how a member learns that it has to rejoin."""
    member = _member_in_generation(group, event.member_id, event.instance_id, event.generation)
    group.record_heartbeat(member, now_ms)
    raise RebalanceInProgressError(group.reason)


def check_commit(
    group: GroupState, member_id: str, instance_id: str | None, generation: int, now_ms: int
) -> None:
    """Validate an offset commit by the rules of Kafka's `validateOffsetCommit`.

    A commit without a generation comes from a consumer that assigns partitions to itself, or from
    an administrator: it is accepted while there are no members. A member that commits between Join
    and Sync gets REBALANCE_IN_PROGRESS, which clients handle well.
    """
    if group.state is State.DEAD:
        raise CoordinatorUnavailableError("this broker is no longer the group's coordinator")
    if group.state is State.EMPTY and generation < 0:
        return
    if generation < 0 and not member_id and instance_id is None:
        raise UnknownMemberError("the group has members, so only its members may commit")
    member = _member_in_generation(group, member_id, instance_id, generation)
    if group.state is State.COMPLETING:
        raise RebalanceInProgressError(group.reason)
    group.record_heartbeat(member, now_ms)


def check_transactional_commit(
    group: GroupState, member_id: str, instance_id: str | None, generation: int
) -> None:
    """Validate a commit in a transaction: older clients do not say of which member it is.

    It does not count as a heartbeat, and may come between Join and Sync, as in Kafka.
    """
    if group.state is State.DEAD:
        raise CoordinatorUnavailableError("this broker is no longer the group's coordinator")
    if group.state is State.EMPTY and generation < 0:
        return
    if generation >= 0 or member_id or instance_id is not None:
        _member_in_generation(group, member_id, instance_id, generation)
