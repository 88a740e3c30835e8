"""The rebalance of a classic group: members rejoin, and the next generation starts.

As in Kafka: members learn from their next heartbeat that they have to rejoin. Members that do not
rejoin in time are removed, except for static members, which stay until their session ends. The
leader stays the same while it rejoins.
"""

from typing import Final

from kafscale.errors import KafscaleError, RebalanceInProgressError, UnknownMemberError
from kafscale.groups.classic.group_state import GroupState, InitialDelay, State
from kafscale.groups.classic.member import Member
from kafscale.groups.effects import NO_REPLY_TOKEN, Rebalanced

POSTPONE_MS_MIN: Final = 1_000
"""Members may have a rebalance timeout of 0; while none rejoins, a group must not busy-loop."""


def prepare_rebalance(group: GroupState, reason: str, now_ms: int) -> None:
    """Make the members rejoin, and continue at once if all have joined."""
    group.reason = reason
    group.sync_deadline_ms = None
    if group.state is State.COMPLETING:
        _cancel_syncs(group, now_ms)
    timeout_ms = group.members.rebalance_timeout_ms
    if group.state is State.EMPTY:
        step_ms = group.settings.initial_rebalance_delay_ms
        group.initial_delay = InitialDelay.start(step_ms, timeout_ms, now_ms)
        group.join_deadline_ms = now_ms + step_ms
    else:
        group.join_deadline_ms = now_ms + timeout_ms
    group.schedule_deadline(group.join_deadline_ms)
    group.transition_to(State.PREPARING, now_ms)
    maybe_complete_join(group, now_ms)


def maybe_complete_join(group: GroupState, now_ms: int) -> None:
    """Start the next generation if no member is awaited any more."""
    assert group.state is State.PREPARING
    members = group.members
    if not members or (group.initial_delay is None and members.have_all_joined):
        next_generation(group, now_ms)


def next_generation(group: GroupState, now_ms: int) -> None:
    """Start the next generation with the members that have joined."""
    members = group.members
    group.initial_delay = None
    group.join_deadline_ms = None
    for member in [other for other in members if not other.has_joined and not other.is_static]:
        remove_member(group, member)
    if members and not _elect_leader(group):
        # Only static members are left, and none has joined: their sessions decide.
        timeout_ms = max(members.rebalance_timeout_ms, POSTPONE_MS_MIN)
        group.join_deadline_ms = now_ms + timeout_ms
        group.schedule_deadline(group.join_deadline_ms)
        return
    group.generation += 1
    group.protocol = members.choose_protocol() if members else ""
    group.topics = group.subscribed_topics()
    if members:
        _start_generation(group, now_ms)
    else:
        group.leader = ""
        group.transition_to(State.EMPTY, now_ms)
    group.effects.append(Rebalanced(group.generation, len(members), group.reason))


def remove_member(
    group: GroupState, member: Member, error: type[KafscaleError] = UnknownMemberError
) -> None:
    """Remove a member; its pending requests fail."""
    group.members.remove(member)
    group.is_changed = True
    for reply_token in (member.join_reply_token, member.sync_reply_token):
        group.reply(reply_token, error(f"member {member.member_id} is no longer in the group"))
    member.join_reply_token = member.sync_reply_token = NO_REPLY_TOKEN


def _elect_leader(group: GroupState) -> bool:
    """Find a leader among the joined members: the last one, else the oldest."""
    last = group.members.get(group.leader)
    if last is not None and last.has_joined:
        return True
    candidate = next((member for member in group.members if member.has_joined), None)
    if candidate is not None:
        group.leader = candidate.member_id
    return candidate is not None


def _start_generation(group: GroupState, now_ms: int) -> None:
    """Reply to the members that their generation has started, and wait for their syncs."""
    group.transition_to(State.COMPLETING, now_ms)
    for member in group.members:
        # Unlike the replies to SyncGroup and to a static member that rejoins, this one carries no
        # assignment and need not be durable: if a crash undoes the generation, SyncGroup is
        # rejected and the member joins again.
        group.reply(member.join_reply_token, group.join_response(member))
        member.join_reply_token = NO_REPLY_TOKEN
        member.is_new = False
        member.has_synced = False
        group.record_heartbeat(member, now_ms)
    group.sync_deadline_ms = now_ms + group.members.rebalance_timeout_ms
    group.schedule_deadline(group.sync_deadline_ms)


def _cancel_syncs(group: GroupState, now_ms: int) -> None:
    """Fail pending syncs: the awaited assignment will not come."""
    for member in group.members:
        member.assignment = b""
        if member.sync_reply_token != NO_REPLY_TOKEN:
            group.reply(member.sync_reply_token, RebalanceInProgressError(group.reason))
            member.sync_reply_token = NO_REPLY_TOKEN
            group.record_heartbeat(member, now_ms)
