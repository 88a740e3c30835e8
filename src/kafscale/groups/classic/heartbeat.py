"""Heartbeat, and checks of commits: a member of the current generation is alive."""

from kafscale.errors import (
    CoordinatorUnavailableError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from kafscale.groups.classic.group_state import GroupState, State
from kafscale.groups.classic.member import Member
from kafscale.groups.events import Heartbeat
from kafscale.groups.responses import Alive


def member_in_generation(
    group: GroupState, member_id: str, instance_id: str | None, generation: int
) -> Member:
    """The member of this generation; raises if it is not."""
    member = group.members.member_or_raise(member_id, instance_id)
    if generation != group.generation:
        raise IllegalGenerationError(f"the group is in generation {group.generation}")
    return member


def heartbeat(group: GroupState, event: Heartbeat, now_ms: int) -> None:
    """In a generation, also before its assignments are known."""
    member = member_in_generation(group, event.member_id, event.instance_id, event.generation)
    group.record_heartbeat(member, now_ms)
    group.reply(event.reply_token, Alive())


def heartbeat_preparing(group: GroupState, event: Heartbeat, now_ms: int) -> None:
    """This is how a member learns that it has to rejoin."""
    member = member_in_generation(group, event.member_id, event.instance_id, event.generation)
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
    member = member_in_generation(group, member_id, instance_id, generation)
    if group.state is State.COMPLETING:
        raise RebalanceInProgressError(group.reason)
    group.record_heartbeat(member, now_ms)
