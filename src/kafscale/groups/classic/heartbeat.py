"""Heartbeats, and commits: a member shows that it is there, and in which generation."""

from kafscale.errors import (
    CoordinatorUnavailableError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from kafscale.groups.classic.group_state import Standing
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.state import State
from kafscale.groups.events import Heartbeat
from kafscale.groups.responses import Alive


def present(standing: Standing, member_id: str, instance_id: str | None, generation: int) -> Member:
    """The member that says it is in this generation; raises if it is not."""
    member = standing.roster.find(member_id, instance_id)
    if generation != standing.generation:
        raise IllegalGenerationError(f"the group is in generation {standing.generation}")
    return member


def beat(standing: Standing, event: Heartbeat, now_ms: int) -> None:
    """In a generation, also before its members are told what they own."""
    member = present(standing, event.member_id, event.instance_id, event.generation)
    standing.hear(member, now_ms)
    standing.reply(event.ticket, Alive())


def beat_preparing(standing: Standing, event: Heartbeat, now_ms: int) -> None:
    """This is how a member learns that it has to join again."""
    member = present(standing, event.member_id, event.instance_id, event.generation)
    standing.hear(member, now_ms)
    raise RebalanceInProgressError(standing.reason)


def check_commit(
    standing: Standing, member_id: str, instance_id: str | None, generation: int, now_ms: int
) -> None:
    """Whether a commit may be taken, by the rules of Kafka's `validateOffsetCommit`.

    Without a generation comes who assigns partitions to itself, or an administrator: they may
    commit while there are no members. A member that commits between Join and Sync is told that the
    group rebalances, which it handles gracefully.
    """
    if standing.state is State.DEAD:
        raise CoordinatorUnavailableError("the group is not looked after here any more")
    if standing.state is State.EMPTY and generation < 0:
        return
    if generation < 0 and not member_id and instance_id is None:
        raise UnknownMemberError("the group has members, and only they may commit")
    member = present(standing, member_id, instance_id, generation)
    if standing.state is State.COMPLETING:
        raise RebalanceInProgressError(standing.reason)
    standing.hear(member, now_ms)
