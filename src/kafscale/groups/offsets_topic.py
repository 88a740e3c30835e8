"""The records of `__consumer_offsets`, as tools that read this topic expect them. Pure.

Keys and values start with their version, big-endian; a text is an int16 length and that many bytes:

    key of an offset     version 1, group, topic (texts), partition int32
    its value            version 3: offset int64, leader epoch int32, metadata (text), commit time
                         int64; or, with a retention time of its own, version 1: offset, metadata,
                         commit time, expiration time int64
    key of a group       version 2, group (text)
    its value            version 3: protocol type (text), generation int32, protocol, leader (texts
                         or null), time of the state int64, members: id (text), instance id (text
                         or null), client id, host (texts), rebalance and session timeout int32,
                         subscription, assignment (int32 length and bytes)

These are the versions that Apache Kafka 4 writes. A deleted key has a null value. So has a group of
the consumer protocol: Kafka keeps it under other keys, one per member, which are not shown here.
"""

from struct import Struct
from typing import Final

from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.model import GroupRecord, GroupType, MemberRecord

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_OFFSET: Final = Struct(">hqi")
_EXPIRING_OFFSET: Final = Struct(">hq")

OFFSET_KEY, GROUP_KEY = 1, 2
OFFSET_VALUE, EXPIRING_OFFSET_VALUE, GROUP_VALUE = 3, 1, 3
TEXT_BYTES_MAX: Final = 2**15 - 1
_NULL: Final = -1


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return _INT16.pack(OFFSET_KEY) + _text(group_id) + _text(topic) + _INT32.pack(partition)


def offset_value(committed: CommittedOffset) -> bytes:
    metadata, time = _text(committed.metadata), _INT64.pack(committed.committed_ms)
    if committed.expires_ms is not None:
        head = _EXPIRING_OFFSET.pack(EXPIRING_OFFSET_VALUE, committed.offset)
        return head + metadata + time + _INT64.pack(committed.expires_ms)
    head = _OFFSET.pack(OFFSET_VALUE, committed.offset, committed.leader_epoch)
    return head + metadata + time


def group_key(group_id: str) -> bytes:
    return _INT16.pack(GROUP_KEY) + _text(group_id)


def group_value(group: GroupRecord) -> bytes | None:
    """The value of a classic group; None for other groups."""
    if group.group_type is not GroupType.CLASSIC:
        return None
    parts = [
        _INT16.pack(GROUP_VALUE),
        _text(group.protocol_type),
        _INT32.pack(group.generation),
        _nullable(group.protocol or None),
        _nullable(group.leader or None),
        _INT64.pack(group.state_since_ms),
        _INT32.pack(len(group.members)),
    ]
    for member in group.members.values():
        parts += _member(member, group.protocol)
    return b"".join(parts)


def _member(member: MemberRecord, protocol: str) -> list[bytes]:
    return [
        _text(member.member_id),
        _nullable(member.instance_id),
        _text(member.client_id),
        _text(member.client_host),
        _INT32.pack(member.rebalance_timeout_ms),
        _INT32.pack(member.session_timeout_ms),
        _bytes(dict(member.protocols).get(protocol, b"")),
        _bytes(member.assignment),
    ]


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) > TEXT_BYTES_MAX:
        # Only metadata can be as long, if the settings allow it; cut between characters.
        data = data[:TEXT_BYTES_MAX].decode(errors="ignore").encode()
    return _INT16.pack(len(data)) + data


def _nullable(text: str | None) -> bytes:
    return _INT16.pack(_NULL) if text is None else _text(text)


def _bytes(data: bytes) -> bytes:
    return _INT32.pack(len(data)) + data
