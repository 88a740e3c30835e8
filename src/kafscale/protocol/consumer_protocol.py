r"""What the consumers of a classic group tell each other through the coordinator.

To the coordinator these are opaque bytes: a member's `Subscription` is the metadata of JoinGroup,
its `Assignment` the one of SyncGroup, where the protocol type is "consumer". The broker reads them
for descriptions, and to know which topics a group still reads.

Version notes:
* v1: the partitions that the member holds, for cooperative rebalancing (KIP-429).
* v2: the generation in which it got them (KIP-792).
* v3: the member's rack (KIP-881).

Each is led by its version, never flexible, and may be followed by bytes that nobody asked for. New
versions only ever append, so that one which is newer than ours is read as the newest of ours:

    >>> written = encode_subscription(Subscription(topics=["orders"], rack_id="b"))
    >>> newer = b"\x00\x63" + written[2:] + b"what version 99 appends"
    >>> decode_subscription(newer).rack_id
    'b'
    >>> decode_version(newer)
    3
"""

from typing import Annotated, TypeVar

from kafscale.errors import EncodeError, ProtocolError
from kafscale.protocol.codec import Buffer, codec
from kafscale.protocol.wire import Bytes, Int16, Int32, Message, String, since

PROTOCOL_TYPE = "consumer"
VERSION_MAX = 3

M = TypeVar("M", bound=Message)


class Prefix(Message):
    version: Int16 = 0


class TopicPartitions(Message):
    name: String = ""
    partitions: list[Int32] = []


class Subscription(Message):
    """What a member wants to read, and what it holds already."""

    topics: list[String] = []
    user_data: Bytes | None = None
    """For the assignor, which alone knows its format."""
    owned_partitions: Annotated[list[TopicPartitions], since(1)] = []
    generation_id: Annotated[Int32, since(2)] = -1
    """-1 when the member was in none."""
    rack_id: Annotated[String | None, since(3)] = None


class Assignment(Message):
    """What a member is to read. Its versions follow those of the subscription; all are the same."""

    assigned_partitions: list[TopicPartitions] = []
    user_data: Bytes | None = None
    """From the assignor, which alone knows its format."""


def encode_subscription(subscription: Subscription, version: int = VERSION_MAX) -> bytes:
    """The subscription as bytes; what the version lacks is left out."""
    return _encode(subscription, version)


def decode_subscription(buffer: Buffer) -> Subscription:
    """Read a subscription; what its version lacks has its default."""
    return _decode(Subscription, buffer)


def encode_assignment(assignment: Assignment, version: int = VERSION_MAX) -> bytes:
    """The assignment as bytes, in a version that its member understands."""
    return _encode(assignment, version)


def decode_assignment(buffer: Buffer) -> Assignment:
    return _decode(Assignment, buffer)


def decode_version(buffer: Buffer) -> int:
    """The version to read these bytes in, and to answer their writer in."""
    version, _ = _version_at_start(memoryview(buffer))
    return version


def _encode(message: Message, version: int) -> bytes:
    if version not in range(VERSION_MAX + 1):
        raise EncodeError(f"cannot write {type(message).__name__} v{version}: it is not known")
    prefix = codec(Prefix, 0, flexible=False).encode_bytes(Prefix(version))
    return prefix + codec(type(message), version, flexible=False).encode_bytes(message)


def _decode(message: type[M], buffer: Buffer) -> M:
    view = memoryview(buffer)
    version, position = _version_at_start(view)
    decoded, _ = codec(message, version, flexible=False).decode_at(view, position)
    return decoded


def _version_at_start(view: memoryview) -> tuple[int, int]:
    """The version to read in, and the position after it."""
    prefix, position = codec(Prefix, 0, flexible=False).decode_at(view, 0)
    if prefix.version < 0:
        raise ProtocolError(f"the consumer protocol has no version {prefix.version}")
    return min(prefix.version, VERSION_MAX), position
