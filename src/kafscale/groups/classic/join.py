"""JoinGroup: a member takes part in the next generation.

`classify_join` validates a Join and distinguishes three kinds: a new member, a member with an id,
and a static instance that has restarted and lost its id. The transition table says what each does
in each state.

A member that joins while the group prepares is not saved yet: the generation that starts with it
will be. After a crash it has to rejoin, which costs less than writing all members for each join.
"""

import msgspec

from kafscale.errors import (
    FencedInstanceError,
    GroupFullError,
    InconsistentProtocolError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    RebalanceInProgressError,
)
from kafscale.groups.classic.group_state import GroupState, State, Step
from kafscale.groups.classic.member import Member
from kafscale.groups.classic.rebalance import maybe_complete_join, prepare_rebalance, remove_member
from kafscale.groups.events import Join


def classify_join(group: GroupState, event: Join, now_ms: int) -> Step:
    """The step of a Join; raises if it is rejected."""
    settings = group.settings
    timeout_ms = event.session_timeout_ms
    if not settings.session_timeout_ms_min <= timeout_ms <= settings.session_timeout_ms_max:
        raise InvalidSessionTimeoutError(
            f"session timeout {timeout_ms} ms is out of range: expected"
            f" {settings.session_timeout_ms_min} to {settings.session_timeout_ms_max} ms"
        )
    if group.state is State.DEAD:
        return Step.REJOIN if event.member_id else Step.NEW_MEMBER
    members = group.members
    known = (
        members.get(event.member_id)
        if event.member_id
        else members.static_member(event.instance_id)
    )
    if not _has_capacity(group, known):
        if known is not None:
            remove_member(group, known)
            maybe_complete_join(group, now_ms)
        raise GroupFullError(f"the group has reached its maximum of {settings.size_max} members")
    if not _is_compatible(group, event):
        raise InconsistentProtocolError("no protocol in common with the group")
    if not event.member_id:
        return Step.NEW_MEMBER if known is None else Step.STATIC_REJOIN
    is_expected = event.member_id in members.pending_member_ids and event.instance_id is None
    return Step.NEW_MEMBER if is_expected else Step.REJOIN


# --- new members --------------------------------------------------------------------------------


def add_member(group: GroupState, event: Join, now_ms: int) -> None:
    """In a group with or without a generation: all members have to rejoin."""
    member = _create_member(group, event, now_ms)
    prepare_rebalance(group, _reason(f"member {member.member_id} has joined", event), now_ms)


def add_member_preparing(group: GroupState, event: Join, now_ms: int) -> None:
    """The members are joining anyway; in a new group, more may follow."""
    _create_member(group, event, now_ms)
    if group.initial_delay is not None:
        group.initial_delay.has_new_member = True
    maybe_complete_join(group, now_ms)


def _create_member(group: GroupState, event: Join, now_ms: int) -> Member:
    """Add a new member, unless it has to learn its id first."""
    members = group.members
    if not event.member_id and event.requires_known_member_id and event.instance_id is None:
        members.pending_member_ids[event.new_member_id] = now_ms + event.session_timeout_ms
        group.schedule_deadline(members.pending_member_ids[event.new_member_id])
        raise MemberIdRequiredError(event.new_member_id)
    if not members:
        group.protocol_type = event.protocol_type
    member = _new_member(event, event.member_id or event.new_member_id, now_ms)
    member.is_new = True
    member.join_reply_token = event.reply_token
    members.add(member)
    group.schedule_deadline(member.expires_ms)
    return member


# --- known members ------------------------------------------------------------------------------


def member_rejoined_preparing(group: GroupState, event: Join, now_ms: int) -> None:
    _update_member(group, event)
    maybe_complete_join(group, now_ms)


def member_rejoined_completing(group: GroupState, event: Join, now_ms: int) -> None:
    """It may have missed the response, and gets it again, unless its protocols have changed."""
    member = group.members.member_or_raise(event.member_id, event.instance_id)
    if member.protocols == event.protocols:
        group.record_heartbeat(member, now_ms)
        group.reply(event.reply_token, group.join_response(member))
    else:
        _update_member(group, event)
        prepare_rebalance(group, _reason(f"member {member.member_id} has changed", event), now_ms)


def member_rejoined_stable(group: GroupState, event: Join, now_ms: int) -> None:
    """The leader rejoins to assign again; other members only if they change."""
    if event.member_id == group.leader:
        _update_member(group, event)
        prepare_rebalance(
            group, _reason(f"leader {event.member_id} has joined again", event), now_ms
        )
    else:
        member_rejoined_completing(group, event, now_ms)


def _update_member(group: GroupState, event: Join) -> None:
    """Update a member from its Join, which stays pending.

    An older Join of the same member was probably sent over a lost connection: Kafka leaves it
    without a response, here it gets REBALANCE_IN_PROGRESS.
    """
    member = group.members.member_or_raise(event.member_id, event.instance_id)
    group.reply(member.join_reply_token, RebalanceInProgressError("the member has joined again"))
    group.members.update_protocols(member, event.protocols)
    member.session_timeout_ms = event.session_timeout_ms
    member.rebalance_timeout_ms = event.rebalance_timeout_ms
    member.join_reply_token = event.reply_token


# --- static members that rejoin with a new id ---------------------------------------------------


def static_member_rejoined_preparing(group: GroupState, event: Join, now_ms: int) -> None:
    _replace_static_member(group, event, now_ms).join_reply_token = event.reply_token
    maybe_complete_join(group, now_ms)


def static_member_rejoined_completing(group: GroupState, event: Join, now_ms: int) -> None:
    """The leader is assigning to the old id, so it has to assign again."""
    member = _replace_static_member(group, event, now_ms)
    member.join_reply_token = event.reply_token
    prepare_rebalance(group, _reason(f"instance {member.instance_id} has returned", event), now_ms)


def static_member_rejoined_stable(group: GroupState, event: Join, now_ms: int) -> None:
    """A static member that returns in time keeps its assignment, without a rebalance (KIP-345).

    Kafka compares the selected protocol only, not the metadata: a sticky assignor's differs after
    every start. A returning leader would assign again if the response named it as leader; so it is
    asked to skip that (KIP-814) or, if it is too old for that, the response names its former id as
    leader.
    """
    former_leader = group.leader
    member = _replace_static_member(group, event, now_ms)
    if group.members.choose_protocol() != group.protocol:
        member.join_reply_token = event.reply_token
        prepare_rebalance(
            group, _reason(f"instance {member.instance_id} has changed", event), now_ms
        )
        return
    is_leader = member.member_id == group.leader
    response = group.join_response(member, is_skipping=is_leader)
    if is_leader and not event.supports_skipping_assignment:
        response = msgspec.structs.replace(
            response, leader=former_leader, members=(), skip_assignment=False
        )
    group.reply(event.reply_token, response, is_durable=True)


def _replace_static_member(group: GroupState, event: Join, now_ms: int) -> Member:
    """Replace the member of an instance; the old one is fenced."""
    old = group.members.static_member(event.instance_id)
    assert old is not None
    remove_member(group, old, FencedInstanceError)
    member = _new_member(event, event.new_member_id, now_ms)
    member.assignment = old.assignment
    member.has_synced = old.has_synced
    group.members.add(member)
    group.schedule_deadline(member.expires_ms)
    if group.leader == old.member_id:
        group.leader = member.member_id
    return member


# --- common functions ---------------------------------------------------------------------------


def _has_capacity(group: GroupState, known: Member | None) -> bool:
    """Whether one more may join: while a group prepares, only joined members are counted.

    So the last members to rejoin are rejected, if a group has become larger than its limit.
    """
    members, size_max = group.members, group.settings.size_max
    if group.state is not State.PREPARING:
        return known is not None or len(members) < size_max
    if known is not None and known.has_joined:
        return True
    return len(members) < size_max or sum(member.has_joined for member in members) < size_max


def _is_compatible(group: GroupState, event: Join) -> bool:
    if group.state is State.EMPTY:
        return bool(event.protocol_type and event.protocols)
    same_type = event.protocol_type == group.protocol_type
    return same_type and group.members.supports_any(event.protocols)


def _new_member(event: Join, member_id: str, now_ms: int) -> Member:
    return Member(
        member_id=member_id,
        instance_id=event.instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
        session_timeout_ms=event.session_timeout_ms,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        protocols=event.protocols,
        heartbeat_ms=now_ms,
    )


def _reason(what: str, event: Join) -> str:
    return f"{what}: {event.reason}" if event.reason else what
