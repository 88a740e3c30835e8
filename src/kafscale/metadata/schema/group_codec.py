"""Encodes consumer groups, committed and pending offsets as the published protobuf messages.

Invariants: decoding returns a value equal to the encoded one; an invalid value raises
`DamagedObjectError`. What a member reads is stored twice: in fields of Kafscale's own, which are
authoritative, and by topic name in the published fields, for other readers. Nothing that Kafscale
wrote is read back from the names. Unknown topic ids, and member metadata that is not in the
consumer protocol, have no names.

A record by another writer, who knows the published schema only, is read as a classic group: its
own fields are synthesized from the names, as if its members had sent version 0 of the consumer
protocol.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import itemgetter
from typing import Final

from kafscale.errors import DamagedObjectError, EncodeError, ProtocolError
from kafscale.groups.committed_offsets import CommittedOffset, PendingOffsets
from kafscale.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafscale.groups.model import GroupRecord, GroupType, MemberRecord, Partitions
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import TOPIC_ID_BYTES
from kafscale.metadata.schema.protobuf import format_time, parse, read_time, serialize
from kafscale.metadata.store.base import COMMIT_BYTES_MAX, Entry
from kafscale.text.topic_partition import TopicPartition

NAMED_BYTES_MAX: Final = COMMIT_BYTES_MAX // 2
"""Records above this size omit the names."""

NO_LEADER_EPOCH: Final = -1


def encode_group(group: GroupRecord, topic_names: Mapping[bytes, str] = {}) -> bytes:
    """Encode a group; `topic_names` maps the ids of topics that members own to their names."""
    record = messages.ConsumerGroup(
        group_id=group.group_id,
        state=group.state,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader,
        generation_id=group.generation,
        members={member_id: _encode_member(it) for member_id, it in group.members.items()},
        rebalance_timeout_ms=max(
            (member.rebalance_timeout_ms for member in group.members.values()), default=0
        ),
        kind=group.group_type,
        state_since=format_time(group.state_since_ms),
        assignment_epoch=group.assignment_epoch,
    )
    _add_names(record, group, topic_names)
    if record.ByteSize() > NAMED_BYTES_MAX:
        _drop_names(record)
    return serialize(record)


def decode_group(entry: Entry) -> GroupRecord:
    record = parse(messages.ConsumerGroup(), entry)
    key = keys.parse(entry.key)
    assert isinstance(key, keys.ConsumerGroupKey), entry.key
    if record.group_id != key.group:
        raise DamagedObjectError(entry.key, f"contains another group id: {record.group_id!r}")
    if not record.kind:
        record.kind = GroupType.CLASSIC
        _synthesize_topics(entry, record)
    if record.kind not in set(GroupType):
        raise DamagedObjectError(entry.key, f"unknown group type {record.kind!r}")
    return GroupRecord(
        group_id=record.group_id,
        group_type=GroupType(record.kind),
        state=record.state,
        state_since_ms=read_time(entry, record.state_since),
        protocol_type=record.protocol_type,
        protocol=record.protocol,
        leader=record.leader,
        generation=record.generation_id,
        assignment_epoch=record.assignment_epoch,
        members={
            member_id: _decode_member(entry, member_id, member)
            for member_id, member in record.members.items()
        },
    )


def encode_offset(committed: CommittedOffset) -> bytes:
    return serialize(_encode_offset(committed))


def decode_offset(entry: Entry) -> CommittedOffset:
    return _decode_offset(entry, parse(messages.CommittedOffset(), entry))


def encode_pending_offsets(pending: PendingOffsets) -> bytes:
    """Encode the offsets of a group in a transaction."""
    record = messages.PendingOffsets(
        producer_id=pending.producer_id,
        producer_epoch=pending.producer_epoch,
        committed=pending.is_committed,
        started_at=format_time(pending.started_ms),
        offsets=[
            messages.PendingOffsets.Offset(
                topic=topic, partition=partition, offset=_encode_offset(committed)
            )
            for (topic, partition), committed in sorted(pending.offsets.items(), key=itemgetter(0))
        ],
    )
    return serialize(record)


def decode_pending_offsets(entry: Entry) -> PendingOffsets:
    record = parse(messages.PendingOffsets(), entry)
    key = keys.parse(entry.key)
    assert isinstance(key, keys.PendingOffsetsKey), entry.key
    if record.producer_id != key.producer_id:
        raise DamagedObjectError(entry.key, f"contains another producer id: {record.producer_id}")
    return PendingOffsets(
        producer_id=record.producer_id,
        producer_epoch=record.producer_epoch,
        started_ms=read_time(entry, record.started_at),
        offsets={
            _check_partition(entry, each.topic, each.partition): _decode_offset(entry, each.offset)
            for each in record.offsets
        },
        is_committed=record.committed,
    )


def _encode_offset(committed: CommittedOffset) -> messages.CommittedOffset:
    record = messages.CommittedOffset(
        offset=committed.offset,
        metadata=committed.metadata,
        committed_at=format_time(committed.committed_ms),
        leader_epoch=committed.leader_epoch,
        topic_id=committed.topic_id,
        commit_number=committed.commit_number,
    )
    if committed.expires_ms is not None:
        record.expires_at = format_time(committed.expires_ms)
    return record


def _decode_offset(entry: Entry, record: messages.CommittedOffset) -> CommittedOffset:
    is_own_record = record.HasField("topic_id")
    return CommittedOffset(
        offset=record.offset,
        # Other writers omit an unknown epoch; read as 0, it would look like log truncation.
        leader_epoch=record.leader_epoch
        if is_own_record
        else record.leader_epoch or NO_LEADER_EPOCH,
        metadata=record.metadata,
        committed_ms=read_time(entry, record.committed_at),
        expires_ms=read_time(entry, record.expires_at) if record.expires_at else None,
        topic_id=_check_topic_id(entry, record.topic_id) if record.topic_id else b"",
        commit_number=record.commit_number,
    )


def _encode_member(member: MemberRecord) -> messages.GroupMember:
    return messages.GroupMember(
        client_id=member.client_id,
        client_host=member.client_host,
        heartbeat_at=format_time(member.heartbeat_ms),
        session_timeout_ms=member.session_timeout_ms,
        instance_id=member.instance_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        rack_id=member.rack_id,
        protocols=[
            messages.GroupMember.Protocol(name=name, metadata=metadata)
            for name, metadata in member.protocols
        ],
        assignment=member.assignment,
        speaks_consumer_protocol=not member.is_classic,
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        subscribed_names=member.subscribed_names,
        subscribed_regex=member.subscribed_regex,
        server_assignor=member.server_assignor,
        assigned=_encode_partitions(member.assigned),
        revoking=_encode_partitions(member.revoking),
        target=_encode_partitions(member.target),
    )


def _decode_member(entry: Entry, member_id: str, record: messages.GroupMember) -> MemberRecord:
    return MemberRecord(
        member_id=member_id,
        instance_id=record.instance_id if record.HasField("instance_id") else None,
        client_id=record.client_id,
        client_host=record.client_host,
        heartbeat_ms=read_time(entry, record.heartbeat_at),
        session_timeout_ms=record.session_timeout_ms,
        rebalance_timeout_ms=record.rebalance_timeout_ms,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in record.protocols),
        assignment=record.assignment,
        is_classic=not record.speaks_consumer_protocol,
        rack_id=record.rack_id if record.HasField("rack_id") else None,
        member_epoch=record.member_epoch,
        previous_member_epoch=record.previous_member_epoch,
        subscribed_names=tuple(record.subscribed_names),
        subscribed_regex=record.subscribed_regex,
        server_assignor=record.server_assignor if record.HasField("server_assignor") else None,
        assigned=_decode_partitions(entry, record.assigned),
        revoking=_decode_partitions(entry, record.revoking),
        target=_decode_partitions(entry, record.target),
    )


def _encode_partitions(partitions: Partitions) -> Iterable[messages.GroupMember.Partitions]:
    return [
        messages.GroupMember.Partitions(topic_id=topic_id, partitions=sorted(numbers))
        for topic_id, numbers in sorted(partitions.items())
    ]


def _decode_partitions(
    entry: Entry, record: Iterable[messages.GroupMember.Partitions]
) -> Partitions:
    return {
        _check_topic_id(entry, topic.topic_id): frozenset(topic.partitions)
        for topic in record
        if topic.partitions
    }


def _check_partition(entry: Entry, topic: str, partition: int) -> TopicPartition:
    if not topic or "/" in topic or partition < 0:
        raise DamagedObjectError(entry.key, f"invalid partition {topic!r} {partition}")
    return topic, partition


def _check_topic_id(entry: Entry, topic_id: bytes) -> bytes:
    if len(topic_id) != TOPIC_ID_BYTES:
        raise DamagedObjectError(entry.key, f"invalid topic id of {len(topic_id)} bytes")
    return topic_id


MemberTopics = tuple[Iterable[str], Mapping[str, Iterable[int]]]
"""The topics that a member subscribes to, and its assigned partitions."""


def _add_names(
    record: messages.ConsumerGroup, group: GroupRecord, topic_names: Mapping[bytes, str]
) -> None:
    """Fill the published fields of each member, which name topics."""
    for member_id, member in group.members.items():
        if group.group_type is GroupType.CONSUMER:
            subscribed, assigned = _consumer_names(member, topic_names)
        elif group.protocol_type == PROTOCOL_TYPE:
            subscribed, assigned = _classic_names(member, group.protocol)
        else:
            continue
        published = record.members[member_id]
        published.subscriptions.extend(subscribed)
        for topic, numbers in sorted(assigned.items()):
            published.assignments.add(topic=topic, partitions=numbers)


def _drop_names(record: messages.ConsumerGroup) -> None:
    """Clear the published fields."""
    for member in record.members.values():
        member.ClearField("subscriptions")
        member.ClearField("assignments")


def _consumer_names(member: MemberRecord, topic_names: Mapping[bytes, str]) -> MemberTopics:
    return member.subscribed_names, {
        topic_names[topic_id]: sorted(numbers)
        for topic_id, numbers in member.assigned.items()
        if topic_id in topic_names
    }


def _classic_names(member: MemberRecord, protocol: str) -> MemberTopics:
    subscribed: Iterable[str] = ()
    assigned: Mapping[str, Iterable[int]] = {}
    # The bytes are the clients' own and need not be in the consumer protocol.
    with suppress(ProtocolError):
        protocols_by_name = dict(member.protocols)
        metadata = protocols_by_name.get(protocol) or next(iter(protocols_by_name.values()), b"")
        subscribed = decode_subscription(metadata).topics
    with suppress(ProtocolError):
        assigned = decode_assignment(member.assignment)
    return subscribed, assigned


def _synthesize_topics(entry: Entry, record: messages.ConsumerGroup) -> None:
    """Fill the fields of Kafscale's own from the names in the published ones."""
    for member in record.members.values():
        member.rebalance_timeout_ms = record.rebalance_timeout_ms
        if record.protocol_type != PROTOCOL_TYPE or not record.protocol:
            continue
        subscription = Subscription(tuple(member.subscriptions))
        assignment = {topic.topic: topic.partitions for topic in member.assignments}
        try:
            metadata = encode_subscription(subscription, version=0)
            member.assignment = encode_assignment(assignment)
        except EncodeError as error:
            raise DamagedObjectError(entry.key, str(error)) from error
        member.protocols.add(name=record.protocol, metadata=metadata)
