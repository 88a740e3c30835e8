"""The way from one generation to the next: members are called together, and who came begins it.

What Kafka does is done here: who has to rejoin is told so by its next heartbeat; those who have
not come in time are gone, but for static members, which keep their place until their session
ends; and the leader stays the same while it comes back.
"""

from typing import Final

from kafscale.errors import KafscaleError, RebalanceInProgressError, UnknownMemberError
from kafscale.groups.classic.group_state import Standing
from kafscale.groups.classic.initial_delay import InitialDelay
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.state import State
from kafscale.groups.effects import NO_TICKET, Rebalanced

POSTPONED_MS_MIN: Final = 1_000
"""Members may have asked for no time at all; while none of them comes, a group must not spin."""


def prepare(standing: Standing, reason: str, now_ms: int) -> None:
    """Call the members together, and go on at once if they are all here."""
    standing.reason = reason
    standing.sync_due_ms = None
    if standing.state is State.COMPLETING:
        _call_off(standing, now_ms)
    timeout_ms = standing.roster.rebalance_timeout_ms
    if standing.state is State.EMPTY:
        step_ms = standing.settings.initial_rebalance_delay_ms
        standing.delay = InitialDelay.begun(step_ms, timeout_ms, now_ms)
        standing.join_due_ms = now_ms + step_ms
    else:
        standing.join_due_ms = now_ms + timeout_ms
    standing.remind(standing.join_due_ms)
    standing.move_to(State.PREPARING, now_ms)
    go_on(standing, now_ms)


def go_on(standing: Standing, now_ms: int) -> None:
    """Begin the next generation if nobody is waited for any more."""
    assert standing.state is State.PREPARING
    roster = standing.roster
    if not roster or (standing.delay is None and roster.have_all_joined):
        begin(standing, now_ms)


def begin(standing: Standing, now_ms: int) -> None:
    """Begin the next generation with those who are here."""
    roster = standing.roster
    standing.delay = None
    standing.join_due_ms = None
    for member in [each for each in roster if not each.has_joined and not each.is_static]:
        forget(standing, member)
    if roster and not _elect(standing):
        # Only static members are left, and none of them has come: their sessions decide.
        timeout_ms = max(roster.rebalance_timeout_ms, POSTPONED_MS_MIN)
        standing.join_due_ms = now_ms + timeout_ms
        standing.remind(standing.join_due_ms)
        return
    standing.generation += 1
    standing.protocol = roster.choose_protocol() if roster else ""
    standing.topics = standing.topics_read()
    if roster:
        _open(standing, now_ms)
    else:
        standing.leader = ""
        standing.move_to(State.EMPTY, now_ms)
    standing.effects.append(Rebalanced(standing.generation, len(roster), standing.reason))


def forget(
    standing: Standing, member: Member, error: type[KafscaleError] = UnknownMemberError
) -> None:
    """Strike a member off; if it waits for something, it is told why that will not come."""
    standing.roster.remove(member)
    standing.is_changed = True
    for ticket in (member.join_ticket, member.sync_ticket):
        standing.reply(ticket, error(f"member {member.member_id} is not in the group any more"))
    member.join_ticket = member.sync_ticket = NO_TICKET


def _elect(standing: Standing) -> bool:
    """Find a leader among those who have joined: the last one, else the longest-standing."""
    last = standing.roster.get(standing.leader)
    if last is not None and last.has_joined:
        return True
    joined = next((member for member in standing.roster if member.has_joined), None)
    if joined is not None:
        standing.leader = joined.member_id
    return joined is not None


def _open(standing: Standing, now_ms: int) -> None:
    """Tell the members that their generation has begun, and expect them to sync."""
    standing.move_to(State.COMPLETING, now_ms)
    for member in standing.roster:
        standing.reply(member.join_ticket, standing.joined(member))
        member.join_ticket = NO_TICKET
        member.is_newcomer = False
        member.has_synced = False
        standing.hear(member, now_ms)
    standing.sync_due_ms = now_ms + standing.roster.rebalance_timeout_ms
    standing.remind(standing.sync_due_ms)


def _call_off(standing: Standing, now_ms: int) -> None:
    """The assignment that is waited for will never come: the next one will."""
    for member in standing.roster:
        member.assignment = b""
        if member.sync_ticket != NO_TICKET:
            standing.reply(member.sync_ticket, RebalanceInProgressError(standing.reason))
            member.sync_ticket = NO_TICKET
            standing.hear(member, now_ms)
