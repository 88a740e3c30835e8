"""Leave, and time that passes: members go, or are given up, and the others share what they had."""

from collections.abc import Sequence

from kafscale.errors import GroupError, KafscaleError, UnknownMemberError
from kafscale.groups.classic.group_state import Standing
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.rebalance import begin, forget, go_on, prepare
from kafscale.groups.classic.state import State
from kafscale.groups.events import Leave, Leaver, Tick
from kafscale.groups.responses import Left

# --- Leave --------------------------------------------------------------------------------------


def leave(standing: Standing, event: Leave, now_ms: int) -> None:
    """Each is answered for itself; whoever was only promised an id gives that back."""
    gone: list[str] = []
    answers: list[tuple[str, str | None, KafscaleError | None]] = []
    for leaver in event.members:
        error: KafscaleError | None = None
        try:
            if standing.roster.promised.pop(leaver.member_id, None) is None:
                member = _leaving(standing, leaver)
                forget(standing, member)
                gone.append(_described(member, leaver))
        except GroupError as refusal:
            error = refusal
        answers.append((leaver.member_id, leaver.instance_id, error))
    standing.reply(event.ticket, Left(answers))
    _close_ranks(standing, f"members have left: {', '.join(gone)}" if gone else "", now_ms)


def _leaving(standing: Standing, leaver: Leaver) -> Member:
    """Who is meant: an administrator knows an instance, but not the id of its member."""
    if leaver.member_id:
        return standing.roster.find(leaver.member_id, leaver.instance_id)
    member = standing.roster.of_instance(leaver.instance_id)
    if member is None:
        raise UnknownMemberError(f"no member is instance {leaver.instance_id}")
    return member


def _described(member: Member, leaver: Leaver) -> str:
    return f"{member.member_id} ({leaver.reason})" if leaver.reason else member.member_id


# --- Tick ---------------------------------------------------------------------------------------


def tick_empty(standing: Standing, _event: Tick, now_ms: int) -> None:
    """Whoever was promised an id does not seem to come."""
    _expire(standing, now_ms)


def tick_preparing(standing: Standing, _event: Tick, now_ms: int) -> None:
    """Those who did not come in time are not waited for; a new group may wait a little more."""
    _close_ranks(standing, _expired(_expire(standing, now_ms)), now_ms)
    if not _is_due(standing.join_due_ms, now_ms):
        return
    extended_ms = standing.delay.extended(now_ms) if standing.delay is not None else None
    if extended_ms is None:
        begin(standing, now_ms)
    else:
        standing.join_due_ms = extended_ms


def tick_generation(standing: Standing, _event: Tick, now_ms: int) -> None:
    """Members that were silent for too long are given up, and those that never synced."""
    reason = _expired(_expire(standing, now_ms))
    if _is_due(standing.sync_due_ms, now_ms):
        standing.sync_due_ms = None
        silent = [member for member in standing.roster if not member.has_synced]
        for member in silent:
            forget(standing, member)
        if silent:
            reason = f"members have not synced: {_names(silent)}"
    _close_ranks(standing, reason, now_ms)


def _expire(standing: Standing, now_ms: int) -> list[Member]:
    """Give up members whose session is over, and ids that were promised for too long."""
    roster = standing.roster
    for member_id in [id_ for id_, due_ms in roster.promised.items() if due_ms <= now_ms]:
        del roster.promised[member_id]
    expired = [member for member in roster if _is_due(member.expires_ms, now_ms)]
    for member in expired:
        forget(standing, member)
    return expired


def _expired(members: Sequence[Member]) -> str:
    return f"sessions have ended: {_names(members)}" if members else ""


def _names(members: Sequence[Member]) -> str:
    return ", ".join(member.member_id for member in members)


def _is_due(moment_ms: int | None, now_ms: int) -> bool:
    return moment_ms is not None and moment_ms <= now_ms


# --- both ---------------------------------------------------------------------------------------


def _close_ranks(standing: Standing, reason: str, now_ms: int) -> None:
    """Go on without those who are gone; with no reason, nobody is."""
    if standing.state is State.PREPARING:
        if reason and not standing.roster:
            standing.reason = reason
        go_on(standing, now_ms)
    elif reason:
        prepare(standing, reason, now_ms)
