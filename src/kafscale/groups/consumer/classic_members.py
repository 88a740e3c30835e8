"""Members of a consumer group that still speak the classic protocol: its online upgrade (KIP-848).

They are members like all others: the coordinator assigns, whatever their assignor. Only how they
are told is different. Their epoch is their generation; JoinGroup is where they say what they own,
and moves them on; it is answered at once, as nobody has to wait for anybody, and nobody is leader;
SyncGroup tells them what is theirs; and a heartbeat answers that a rebalance is in progress when
they have to join again: to move on, to say that they have given up what they were to, or to get
what others have given up by now. Those that are eager own nothing when they join.
"""

from kafscale.errors import (
    GroupError,
    IllegalGenerationError,
    InconsistentProtocolError,
    InvalidSessionTimeoutError,
    KafscaleError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from kafscale.groups.consumer.member import NEVER_MS, Member
from kafscale.groups.consumer.member_metadata import subscription_of
from kafscale.groups.consumer.members import Roster
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE, decode_version, encode_assignment
from kafscale.groups.effects import Effect, Reply
from kafscale.groups.events import Heartbeat, Join, Leave, Leaver, Sync
from kafscale.groups.responses import Alive, Joined, Left, Synced


def join(roster: Roster, event: Join, now_ms: int) -> list[Effect]:
    _check_join(roster, event)
    member = _claimed(roster, event)
    subscription = subscription_of(event)
    profile = member.profile.joined(event, subscription)
    owned = roster.catalogue.by_id(subscription.owned)
    effects = roster.settle(member, profile, owned, now_ms, is_joining=True)
    member.revoke_by_ms = member.join_by_ms = NEVER_MS
    member.sync_by_ms = now_ms + event.rebalance_timeout_ms
    roster.expect(member)
    answer = Joined(
        generation=member.standing.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol=profile.protocol,
        leader="",
        member_id=member.member_id,
    )
    return [*effects, Reply(event.ticket, answer, durable=True)]


def sync(roster: Roster, event: Sync, now_ms: int) -> list[Effect]:
    member = _identified(roster, event)
    protocol = member.profile.protocol
    if event.protocol_type not in {None, PROTOCOL_TYPE} or event.protocol not in {None, protocol}:
        raise InconsistentProtocolError(f"the member was told to use {PROTOCOL_TYPE}, {protocol}")
    # Who is giving up partitions has joined for this epoch already; it may hear what to keep.
    if member.standing.epoch < roster.epoch and not member.standing.revoking:
        _call_back(roster, member, now_ms)
    member.sync_by_ms = NEVER_MS
    member.heartbeat_ms = now_ms
    answer = Synced(
        protocol_type=PROTOCOL_TYPE, protocol=protocol, assignment=_assignment(roster, member)
    )
    return [Reply(event.ticket, answer, durable=True)]


def heartbeat(roster: Roster, event: Heartbeat, now_ms: int) -> list[Effect]:
    member = _identified(roster, event)
    member.heartbeat_ms = now_ms
    standing = member.standing
    is_behind = standing.epoch < roster.epoch or bool(standing.revoking)
    if is_behind or (standing.assigned != member.target and not roster.awaits_others(member)):
        _call_back(roster, member, now_ms)
    return [Reply(event.ticket, Alive())]


def leave(roster: Roster, event: Leave) -> list[Effect]:
    """Classic members go, or an administrator sends members away, of whichever protocol."""
    leavers: dict[str, Member] = {}
    outcomes: list[tuple[str, str | None, KafscaleError | None]] = []
    for leaver in event.members:
        error: KafscaleError | None = None
        try:
            member = _leaver(roster, leaver)
            leavers[member.member_id] = member
        except GroupError as refusal:
            error = refusal
        outcomes.append((leaver.member_id, leaver.instance_id, error))
    effects = roster.remove(leavers.values(), "a member left")
    return [*effects, Reply(event.ticket, Left(outcomes), durable=bool(leavers))]


def _check_join(roster: Roster, event: Join) -> None:
    settings = roster.settings
    timeout_ms = event.session_timeout_ms
    if not settings.session_timeout_ms_min <= timeout_ms <= settings.session_timeout_ms_max:
        raise InvalidSessionTimeoutError(f"a session timeout of {timeout_ms} ms is out of bounds")
    common = {name for name, _ in event.protocols}
    for member in roster.members.values():
        if member.profile.is_classic:
            common &= {name for name, _ in member.profile.protocols}
    if event.protocol_type != PROTOCOL_TYPE or not common:
        raise InconsistentProtocolError("no protocol in common with the other classic members")


def _claimed(roster: Roster, event: Join) -> Member:
    """The member that joins; it may not be in the roster yet."""
    if event.instance_id is not None:
        if event.member_id:
            return roster.identified(event.member_id, event.instance_id)
        seated = roster.seated(event.instance_id)
        if seated is None:
            return roster.newcomer(event.fresh_id)
        return roster.successor(seated, event.fresh_id)
    if not event.member_id and event.must_know_id:
        raise MemberIdRequiredError(event.fresh_id)
    # An id that is not known is that of a member which was just told it, or has been removed.
    member_id = event.member_id or event.fresh_id
    return roster.members.get(member_id) or roster.newcomer(member_id)


def _leaver(roster: Roster, leaver: Leaver) -> Member:
    """Who is to leave; an administrator may name an instance alone."""
    seated = roster.seated(leaver.instance_id)
    if seated is not None and not leaver.member_id:
        return seated
    return roster.identified(leaver.member_id, leaver.instance_id)


def _identified(roster: Roster, event: Sync | Heartbeat) -> Member:
    """The classic member that is asking, in the generation that it was told."""
    member = roster.identified(event.member_id, event.instance_id)
    if not member.profile.is_classic:
        raise UnknownMemberError(f"{member.member_id} does not speak the classic protocol")
    if event.generation != member.standing.epoch:
        raise IllegalGenerationError(f"the member is in generation {member.standing.epoch}")
    return member


def _call_back(roster: Roster, member: Member, now_ms: int) -> None:
    """Tell a member to join again, and give it time to; always raises."""
    if member.join_by_ms == NEVER_MS:
        member.join_by_ms = now_ms + member.profile.rebalance_timeout_ms
        roster.expect(member)
    raise RebalanceInProgressError("the assignment has changed: join again")


def _assignment(roster: Roster, member: Member) -> bytes:
    """What a member may read, as bytes of the version in which it spoke itself."""
    _, metadata = member.profile.protocols[0]
    partitions = roster.catalogue.by_name(member.standing.assigned)
    return encode_assignment(partitions, None, decode_version(metadata))
