"""LeaveGroup, and ticks: members leave or expire, and the others rebalance."""

from collections.abc import Sequence

from kafscale.errors import GroupError, KafscaleError, UnknownMemberError
from kafscale.groups.classic.group_state import GroupState, State
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.rebalance import (
    maybe_complete_join,
    next_generation,
    prepare_rebalance,
    remove_member,
)
from kafscale.groups.effects import Left
from kafscale.groups.events import Leave, MemberIdentity, Tick

# --- Leave --------------------------------------------------------------------------------------


def leave(group: GroupState, event: Leave, now_ms: int) -> None:
    """Each member gets its own result; a pending member id is released."""
    left: list[str] = []
    results: list[tuple[str, str | None, KafscaleError | None]] = []
    for leaving in event.members:
        error: KafscaleError | None = None
        try:
            if group.members.pending_member_ids.pop(leaving.member_id, None) is None:
                member = _find_leaving_member(group, leaving)
                remove_member(group, member)
                left.append(_describe(member, leaving))
        except GroupError as group_error:
            error = group_error
        results.append((leaving.member_id, leaving.instance_id, error))
    group.reply(event.reply_token, Left(results))
    _continue_without(group, f"members have left: {', '.join(left)}" if left else "", now_ms)


def _find_leaving_member(group: GroupState, leaving: MemberIdentity) -> Member:
    """The member that leaves; an administrator may name only the instance."""
    if leaving.member_id:
        return group.members.member_or_raise(leaving.member_id, leaving.instance_id)
    member = group.members.static_member(leaving.instance_id)
    if member is None:
        raise UnknownMemberError(f"no member has instance id {leaving.instance_id}")
    return member


def _describe(member: Member, leaving: MemberIdentity) -> str:
    return f"{member.member_id} ({leaving.reason})" if leaving.reason else member.member_id


# --- Tick ---------------------------------------------------------------------------------------


def tick_empty(group: GroupState, _event: Tick, now_ms: int) -> None:
    """Pending member ids expire."""
    _expire(group, now_ms)


def tick_preparing(group: GroupState, _event: Tick, now_ms: int) -> None:
    """Members that did not rejoin in time are removed; a new group may extend its delay."""
    _continue_without(group, _expired(_expire(group, now_ms)), now_ms)
    if not _is_due(group.join_deadline_ms, now_ms):
        return
    extended_ms = group.initial_delay.extend(now_ms) if group.initial_delay is not None else None
    if extended_ms is None:
        next_generation(group, now_ms)
    else:
        group.join_deadline_ms = extended_ms


def tick_generation(group: GroupState, _event: Tick, now_ms: int) -> None:
    """Members whose session has ended are removed, and those that never synced."""
    reason = _expired(_expire(group, now_ms))
    if _is_due(group.sync_deadline_ms, now_ms):
        group.sync_deadline_ms = None
        unsynced = [member for member in group.members if not member.has_synced]
        for member in unsynced:
            remove_member(group, member)
        if unsynced:
            reason = f"members have not synced: {_names(unsynced)}"
    _continue_without(group, reason, now_ms)


def _expire(group: GroupState, now_ms: int) -> list[Member]:
    """Remove members whose session is over, and expired member ids."""
    members = group.members
    for member_id in [
        id_ for id_, deadline_ms in members.pending_member_ids.items() if deadline_ms <= now_ms
    ]:
        del members.pending_member_ids[member_id]
    expired = [member for member in members if _is_due(member.expires_ms, now_ms)]
    for member in expired:
        remove_member(group, member)
    return expired


def _expired(members: Sequence[Member]) -> str:
    return f"sessions have ended: {_names(members)}" if members else ""


def _names(members: Sequence[Member]) -> str:
    return ", ".join(member.member_id for member in members)


def _is_due(moment_ms: int | None, now_ms: int) -> bool:
    return moment_ms is not None and moment_ms <= now_ms


# --- both ---------------------------------------------------------------------------------------


def _continue_without(group: GroupState, reason: str, now_ms: int) -> None:
    """Continue without removed members; `reason` is empty if there are none."""
    if group.state is State.PREPARING:
        if reason and not group.members:
            group.reason = reason
        maybe_complete_join(group, now_ms)
    elif reason:
        prepare_rebalance(group, reason, now_ms)
