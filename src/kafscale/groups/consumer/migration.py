"""From a classic group to a consumer group and back, while its members go on (KIP-848).

Upwards, members keep what their leader has assigned to them, and their generation is their epoch,
so that they do not notice until a member of the new protocol makes a new epoch. Downwards, the
classic group is in the generation for which there are targets, which its members know, and begins
with a rebalance; but for one that is stable, as somebody has taken the last one's place.
"""

from kafscale.errors import GroupNotFoundError, ProtocolError
from kafscale.groups.consumer.member import Member
from kafscale.groups.consumer.member_metadata import Profile
from kafscale.groups.consumer.members import Roster
from kafscale.groups.consumer.partition_sets import difference, is_overlapping, union
from kafscale.groups.consumer.reconciliation import Standing
from kafscale.groups.consumer.subscriptions import Catalogue
from kafscale.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    decode_subscription,
    decode_version,
    encode_assignment,
    has_user_data,
)
from kafscale.groups.model import GroupRecord, Kind, MemberRecord, Partitions


def upgrade(roster: Roster, record: GroupRecord, now_ms: int) -> None:
    """Let the members of a classic group enter an empty roster, or raise why they cannot."""
    assert record.kind is Kind.CLASSIC
    settings = roster.settings
    if not settings.upgrades:
        raise _refused(record, "that is switched off")
    if record.protocol_type != PROTOCOL_TYPE:
        raise _refused(record, f"it is one of {record.protocol_type or 'no known protocol'}")
    if len(record.members) > settings.consumer_size_max:
        raise _refused(record, f"it has {len(record.members)} members")
    roster.epoch = roster.assignment_epoch = record.generation
    held: Partitions = {}
    try:
        # What was assigned to somebody counts for more than what another one says it owns.
        for classic in sorted(record.members.values(), key=lambda member: not member.assignment):
            subscription = _subscription(classic, record)
            assigned = _assigned(classic, record, roster.catalogue, subscription, held)
            held = union(held, assigned)
            roster.enter(_upgraded(classic, record.generation, subscription, assigned, now_ms))
    except ProtocolError as error:
        raise _refused(record, str(error)) from error


def is_downgrade_due(roster: Roster) -> bool:
    """Whether only classic members are left, as many as a classic group may have."""
    settings, members = roster.settings, roster.members
    return (
        settings.downgrades
        and 0 < len(members) <= settings.size_max
        and all(member.profile.is_classic for member in members.values())
    )


def downgraded(record: GroupRecord, catalogue: Catalogue) -> GroupRecord:
    """The classic group of the same members, which are to join again where some have left."""
    members = list(record.members.values())
    assert members
    assert all(member.is_classic for member in members)
    offers = [{name for name, _ in member.protocols} for member in members]
    common = set.intersection(*offers)
    return GroupRecord(
        group_id=record.group_id,
        kind=Kind.CLASSIC,
        state="Stable" if record.state == "Stable" else "PreparingRebalance",
        state_since_ms=record.state_since_ms,
        protocol_type=PROTOCOL_TYPE,
        protocol=next((name for name, _ in members[0].protocols if name in common), ""),
        leader=members[0].member_id,
        generation=record.assignment_epoch,
        members={member.member_id: _downgraded(member, catalogue) for member in members},
    )


def _subscription(classic: MemberRecord, record: GroupRecord) -> Subscription:
    """What a member has last said that it wants, in the protocol that was chosen."""
    offered = dict(classic.protocols)
    if not offered:
        raise _refused(record, f"{classic.member_id} offers no protocol")
    return decode_subscription(offered.get(record.protocol, classic.protocols[0][1]))


def _assigned(
    classic: MemberRecord,
    record: GroupRecord,
    catalogue: Catalogue,
    subscription: Subscription,
    held: Partitions,
) -> Partitions:
    """What a member holds, as far as can be known, beside what others hold."""
    if not classic.assignment:
        # It waits for an assignment, and has kept what it said it owned when it joined.
        return difference(catalogue.by_id(subscription.owned), held)
    if has_user_data(classic.assignment):
        raise _refused(record, "its assignor tells members more than their partitions")
    assigned = catalogue.by_id(decode_assignment(classic.assignment).items())
    if is_overlapping(assigned, held):
        raise _refused(record, "its leader has assigned a partition twice")
    return assigned


def _upgraded(
    classic: MemberRecord, epoch: int, subscription: Subscription, assigned: Partitions, now_ms: int
) -> Member:
    profile = Profile(
        instance_id=classic.instance_id,
        client_id=classic.client_id,
        client_host=classic.client_host,
        rack_id=subscription.rack,
        names=frozenset(subscription.topics),
        session_timeout_ms=classic.session_timeout_ms,
        rebalance_timeout_ms=classic.rebalance_timeout_ms,
        protocols=classic.protocols,
    )
    return Member(
        member_id=classic.member_id,
        profile=profile,
        standing=Standing(epoch=epoch, previous_epoch=epoch, assigned=assigned),
        target=assigned,
        heartbeat_ms=now_ms,
    )


def _downgraded(member: MemberRecord, catalogue: Catalogue) -> MemberRecord:
    _, metadata = member.protocols[0]
    target = catalogue.by_name(member.target)
    return MemberRecord(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        heartbeat_ms=member.heartbeat_ms,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.protocols,
        assignment=encode_assignment(target, None, decode_version(metadata)),
    )


def _refused(record: GroupRecord, reason: str) -> GroupNotFoundError:
    return GroupNotFoundError(f"{record.group_id} cannot become a consumer group: {reason}")
