"""Classic members of a consumer group, during its online upgrade (KIP-848).

The coordinator assigns their partitions, whatever their assignor; only the messages differ. Their
epoch is their generation. JoinGroup carries what they own, and reconciles them; it is answered at
once, as no member waits for another, and there is no leader. SyncGroup returns their assignment. A
heartbeat returns REBALANCE_IN_PROGRESS when they have to rejoin: to reconcile, to confirm a
revocation, or to get partitions that others have released. Eager members own nothing when they
join.
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
from kafscale.groups.consumer.group_state import GroupState
from kafscale.groups.consumer.member import NEVER_MS, Member
from kafscale.groups.consumer.member_metadata import subscription_of
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE, decode_version, encode_assignment
from kafscale.groups.effects import Alive, Effect, Joined, Left, Reply, Synced
from kafscale.groups.events import Heartbeat, Join, Leave, MemberIdentity, Sync


def join(group: GroupState, event: Join, now_ms: int) -> list[Effect]:
    _check_join(group, event)
    member = _find_or_create_member(group, event)
    subscription = subscription_of(event)
    metadata = member.metadata.after_join(event, subscription)
    owned = group.subscriptions.by_id(subscription.owned)
    effects = group.update_member(member, metadata, owned, now_ms, is_joining=True)
    member.revoke_by_ms = member.join_by_ms = NEVER_MS
    member.sync_by_ms = now_ms + event.rebalance_timeout_ms
    group.schedule_deadline(member)
    response = Joined(
        generation=member.assignment.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol=metadata.protocol,
        leader="",
        member_id=member.member_id,
    )
    return [*effects, Reply(event.reply_token, response, is_durable=True)]


def sync(group: GroupState, event: Sync, now_ms: int) -> list[Effect]:
    member = _classic_member(group, event)
    protocol = member.metadata.protocol
    if event.protocol_type not in {None, PROTOCOL_TYPE} or event.protocol not in {None, protocol}:
        raise InconsistentProtocolError(f"the member's protocol is {PROTOCOL_TYPE}, {protocol}")
    # A member that revokes partitions has joined for this epoch already; it gets what to keep.
    if member.assignment.epoch < group.epoch and not member.assignment.revoking:
        _request_rejoin(group, member, now_ms)
    member.sync_by_ms = NEVER_MS
    member.heartbeat_ms = now_ms
    response = Synced(
        protocol_type=PROTOCOL_TYPE, protocol=protocol, assignment=_assignment(group, member)
    )
    return [Reply(event.reply_token, response, is_durable=True)]


def heartbeat(group: GroupState, event: Heartbeat, now_ms: int) -> list[Effect]:
    member = _classic_member(group, event)
    member.heartbeat_ms = now_ms
    assignment = member.assignment
    is_behind = assignment.epoch < group.epoch or bool(assignment.revoking)
    if is_behind or (assignment.assigned != member.target and not group.waits_for_others(member)):
        _request_rejoin(group, member, now_ms)
    return [Reply(event.reply_token, Alive())]


def leave(group: GroupState, event: Leave) -> list[Effect]:
    """Classic members leave, or an administrator removes members of either protocol."""
    leaving_members: dict[str, Member] = {}
    outcomes: list[tuple[str, str | None, KafscaleError | None]] = []
    for leaving in event.members:
        error: KafscaleError | None = None
        try:
            member = _find_leaving_member(group, leaving)
            leaving_members[member.member_id] = member
        except GroupError as group_error:
            error = group_error
        outcomes.append((leaving.member_id, leaving.instance_id, error))
    effects = group.remove(leaving_members.values(), "a member left")
    return [*effects, Reply(event.reply_token, Left(outcomes), is_durable=bool(leaving_members))]


def _check_join(group: GroupState, event: Join) -> None:
    settings = group.settings
    timeout_ms = event.session_timeout_ms
    if not settings.session_timeout_ms_min <= timeout_ms <= settings.session_timeout_ms_max:
        raise InvalidSessionTimeoutError(
            f"session timeout {timeout_ms} ms is out of range: expected"
            f" {settings.session_timeout_ms_min} to {settings.session_timeout_ms_max} ms"
        )
    common = {name for name, _ in event.protocols}
    for member in group.members.values():
        if member.metadata.is_classic:
            common &= {name for name, _ in member.metadata.protocols}
    if event.protocol_type != PROTOCOL_TYPE or not common:
        raise InconsistentProtocolError("no protocol in common with the other classic members")


def _find_or_create_member(group: GroupState, event: Join) -> Member:
    """The member that joins; it may not be in the group yet."""
    if event.instance_id is not None:
        if event.member_id:
            return group.member_or_raise(event.member_id, event.instance_id)
        static_member = group.static_member(event.instance_id)
        if static_member is None:
            return group.new_member(event.new_member_id)
        return group.successor(static_member, event.new_member_id)
    if not event.member_id and event.requires_known_member_id:
        raise MemberIdRequiredError(event.new_member_id)
    # An unknown id belongs to a member that was just given it, or that was removed.
    member_id = event.member_id or event.new_member_id
    return group.members.get(member_id) or group.new_member(member_id)


def _find_leaving_member(group: GroupState, leaving: MemberIdentity) -> Member:
    """The member that leaves; an administrator may name only the instance."""
    static_member = group.static_member(leaving.instance_id)
    if static_member is not None and not leaving.member_id:
        return static_member
    return group.member_or_raise(leaving.member_id, leaving.instance_id)


def _classic_member(group: GroupState, event: Sync | Heartbeat) -> Member:
    """The classic member of this request, in its current generation."""
    member = group.member_or_raise(event.member_id, event.instance_id)
    if not member.metadata.is_classic:
        raise UnknownMemberError(f"{member.member_id} does not use the classic protocol")
    if event.generation != member.assignment.epoch:
        raise IllegalGenerationError(f"the member is in generation {member.assignment.epoch}")
    return member


def _request_rejoin(group: GroupState, member: Member, now_ms: int) -> None:
    """Make a member rejoin, and start the deadline for it; always raises."""
    if member.join_by_ms == NEVER_MS:
        member.join_by_ms = now_ms + member.metadata.rebalance_timeout_ms
        group.schedule_deadline(member)
    raise RebalanceInProgressError("the assignment has changed: rejoin")


def _assignment(group: GroupState, member: Member) -> bytes:
    """A member's assignment, encoded in the version that it used itself."""
    _, metadata = member.metadata.protocols[0]
    partitions = group.subscriptions.by_name(member.assignment.assigned)
    return encode_assignment(partitions, None, decode_version(metadata))
