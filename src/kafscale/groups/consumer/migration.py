"""Upgrade of a classic group to a consumer group and back, while its members continue (KIP-848).

Upgrade: members keep what their leader assigned, and their generation becomes their epoch, so that
they notice nothing until a member of the consumer protocol starts a new epoch. Downgrade: the
classic group has the generation of the target assignment, which its members know, and starts with a
rebalance, unless it is stable because another member has replaced the last one.
"""

from kafscale.errors import GroupNotFoundError, ProtocolError
from kafscale.groups.consumer.group_state import GroupState
from kafscale.groups.consumer.member import Member
from kafscale.groups.consumer.member_metadata import MemberMetadata
from kafscale.groups.consumer.partition_sets import difference, is_overlapping, union
from kafscale.groups.consumer.reconciliation import MemberAssignment
from kafscale.groups.consumer.subscriptions import TopicSubscriptions
from kafscale.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    decode_subscription,
    decode_version,
    encode_assignment,
    has_user_data,
)
from kafscale.groups.model import GroupRecord, GroupType, MemberRecord, Partitions


def upgrade(group: GroupState, record: GroupRecord, now_ms: int) -> None:
    """Add the members of a classic group to an empty state; raises if that is impossible."""
    assert record.group_type is GroupType.CLASSIC
    settings = group.settings
    if not settings.upgrades:
        raise _refused(record, "the online upgrade is disabled")
    if record.protocol_type != PROTOCOL_TYPE:
        raise _refused(record, "the group does not use the consumer embedded protocol")
    if len(record.members) > settings.consumer_size_max:
        raise _refused(record, f"it has {len(record.members)} members")
    group.epoch = group.assignment_epoch = record.generation
    owned: Partitions = {}
    try:
        # Assigned partitions take precedence over what another member claims to own.
        for classic in sorted(record.members.values(), key=lambda member: not member.assignment):
            subscription = _subscription(classic, record)
            assigned = _assigned(classic, record, group.subscriptions, subscription, owned)
            owned = union(owned, assigned)
            group.add(_upgraded(classic, record.generation, subscription, assigned, now_ms))
    except ProtocolError as error:
        raise _refused(record, "the embedded consumer protocol is malformed") from error


def is_downgrade_due(group: GroupState) -> bool:
    """Whether only classic members are left, within the limit of a classic group."""
    settings, members = group.settings, group.members
    return (
        settings.downgrades
        and 0 < len(members) <= settings.size_max
        and all(member.metadata.is_classic for member in members.values())
    )


def downgraded(record: GroupRecord, subscriptions: TopicSubscriptions) -> GroupRecord:
    """The classic group of the same members, which have to rejoin if some have left."""
    members = list(record.members.values())
    assert members
    assert all(member.is_classic for member in members)
    offers = [{name for name, _ in member.protocols} for member in members]
    common = set.intersection(*offers)
    return GroupRecord(
        group_id=record.group_id,
        group_type=GroupType.CLASSIC,
        state="Stable" if record.state == "Stable" else "PreparingRebalance",
        state_since_ms=record.state_since_ms,
        protocol_type=PROTOCOL_TYPE,
        protocol=next((name for name, _ in members[0].protocols if name in common), ""),
        leader=members[0].member_id,
        generation=record.assignment_epoch,
        members={member.member_id: _downgraded(member, subscriptions) for member in members},
    )


def _subscription(classic: MemberRecord, record: GroupRecord) -> Subscription:
    """A member's last subscription, in the selected protocol."""
    offered = dict(classic.protocols)
    if not offered:
        raise _refused(record, f"{classic.member_id} offers no protocol")
    return decode_subscription(offered.get(record.protocol, classic.protocols[0][1]))


def _assigned(
    classic: MemberRecord,
    record: GroupRecord,
    subscriptions: TopicSubscriptions,
    subscription: Subscription,
    owned: Partitions,
) -> Partitions:
    """The partitions that a member owns, as far as is known, except for those of others."""
    if not classic.assignment:
        # It waits for an assignment, and still owns what it sent when it joined.
        return difference(subscriptions.by_id(subscription.owned), owned)
    if has_user_data(classic.assignment):
        raise _refused(record, "its assignor sends user data to members")
    assigned = subscriptions.by_id(decode_assignment(classic.assignment).items())
    if is_overlapping(assigned, owned):
        raise _refused(record, "its leader has assigned a partition twice")
    return assigned


def _upgraded(
    classic: MemberRecord, epoch: int, subscription: Subscription, assigned: Partitions, now_ms: int
) -> Member:
    metadata = MemberMetadata(
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
        metadata=metadata,
        assignment=MemberAssignment(epoch=epoch, previous_epoch=epoch, assigned=assigned),
        target=assigned,
        heartbeat_ms=now_ms,
    )


def _downgraded(member: MemberRecord, subscriptions: TopicSubscriptions) -> MemberRecord:
    _, metadata = member.protocols[0]
    target = subscriptions.by_name(member.target)
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
    return GroupNotFoundError(
        f"Cannot upgrade classic group {record.group_id} to consumer group because {reason}."
    )
