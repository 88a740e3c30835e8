"""From groups and committed offsets to the published protobuf messages and back.

The laws: what is encoded is decoded to an equal value; a value that is no such message is a
`DamagedObjectError`, whoever wrote it. What a member reads is said twice: in our fields, which are
the truth, and by names in the published ones, for other readers, which is left to `group_names`. A
record that somebody wrote from the published schema alone is taken for one of a classic group.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kafscale.errors import DamagedObjectError
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.model import GroupRecord, Kind, MemberRecord, Partitions
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import group_names, keys
from kafscale.metadata.schema.model import TOPIC_ID_BYTES
from kafscale.metadata.schema.protobuf import parse_message, read_time
from kafscale.metadata.schema.timestamps import TIME_MS_MAX, format_time
from kafscale.metadata.store.base import COMMIT_BYTES_MAX, Entry

NAMED_BYTES_MAX: Final = COMMIT_BYTES_MAX // 2
"""The size up to which a group's record says everything twice; a larger one has to save."""

NO_LEADER_EPOCH: Final = -1


def encode_group(group: GroupRecord, topic_names: Mapping[bytes, str] = {}) -> bytes:
    """The record of a group; `topic_names` are those of the topics that its members may own."""
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
        kind=group.kind,
        state_since=format_time(group.state_since_ms),
        assignment_epoch=group.assignment_epoch,
    )
    group_names.add(record, group, topic_names)
    if record.ByteSize() > NAMED_BYTES_MAX:
        group_names.drop(record)
    return record.SerializeToString(deterministic=True)


def decode_group(entry: Entry) -> GroupRecord:
    record = parse_message(messages.ConsumerGroup(), entry)
    key = keys.parse(entry.key)
    assert isinstance(key, keys.ConsumerGroupKey), entry.key
    if record.group_id != key.group:
        raise DamagedObjectError(entry.key, f"it holds a group named {record.group_id!r}")
    if not record.kind:
        record.kind = Kind.CLASSIC
        group_names.make_up(entry, record)
    if record.kind not in set(Kind):
        raise DamagedObjectError(entry.key, f"there are no groups of the kind {record.kind!r}")
    return GroupRecord(
        group_id=record.group_id,
        kind=Kind(record.kind),
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
    record = messages.CommittedOffset(
        offset=committed.offset,
        metadata=committed.metadata,
        committed_at=format_time(committed.committed_ms),
        leader_epoch=committed.leader_epoch,
        topic_id=committed.topic_id,
    )
    if committed.expires_ms is not None:
        # Clients may ask for more time than a calendar has: that is for ever.
        record.expires_at = format_time(min(committed.expires_ms, TIME_MS_MAX))
    return record.SerializeToString(deterministic=True)


def decode_offset(entry: Entry) -> CommittedOffset:
    record = parse_message(messages.CommittedOffset(), entry)
    is_ours = record.HasField("topic_id")
    return CommittedOffset(
        offset=record.offset,
        # Who leaves the epoch out knows of none; taken for 0, it would tell of a lost log.
        leader_epoch=record.leader_epoch if is_ours else record.leader_epoch or NO_LEADER_EPOCH,
        metadata=record.metadata,
        committed_ms=read_time(entry, record.committed_at),
        expires_ms=read_time(entry, record.expires_at) if record.expires_at else None,
        topic_id=_checked_id(entry, record.topic_id) if record.topic_id else b"",
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
        _checked_id(entry, topic.topic_id): frozenset(topic.partitions)
        for topic in record
        if topic.partitions
    }


def _checked_id(entry: Entry, topic_id: bytes) -> bytes:
    if len(topic_id) != TOPIC_ID_BYTES:
        raise DamagedObjectError(entry.key, f"a topic id of {len(topic_id)} bytes")
    return topic_id
