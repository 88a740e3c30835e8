r"""ConsumerProtocol: the bytes that consumers of a classic group exchange via the coordinator.

A member's `Subscription` is the metadata of JoinGroup, its assignment the bytes of SyncGroup, if
the protocol type is "consumer". Both start with their version, big-endian, never flexible:

    subscription   version int16, topics [text], user data (bytes or null),
                   from 1 owned [text, [int32]], from 2 generation int32, from 3 rack (text or null)
    assignment     version int16, topics [text, [int32]], user data (bytes or null)

The rules are Kafka's. A newer version only appends fields, so it is read as the newest known
version, and trailing bytes are ignored. Undecodable bytes raise `ProtocolError`: the coordinator
stores and forwards them nevertheless, as only their readers have to understand them.

    >>> newer = encode_subscription(Subscription(("orders",), rack="b")).replace(b"\0\3", b"\0\x63")
    >>> decode_subscription(newer + b"what version 99 appends").rack
    'b'
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Final, NoReturn

import msgspec

from kafscale.errors import EncodeError, ProtocolError

PROTOCOL_TYPE: Final = "consumer"
VERSION_MAX: Final = 3
NO_GENERATION: Final = -1
NULL: Final = -1
TEXT_BYTES_MAX: Final = 2**15 - 1

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")

Buffer = bytes | bytearray | memoryview


class Subscription(msgspec.Struct, frozen=True):
    """The topics that a member subscribes to, and the partitions it owns."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    """For the assignor, which defines its format."""
    owned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Topics with the partitions that the member owns (from version 1)."""
    generation: int = NO_GENERATION
    """The generation in which it got them (from version 2)."""
    rack: str | None = None
    """Its rack (from version 3)."""


def decode_version(data: Buffer) -> int:
    """The version in which to read these bytes, and to respond."""
    return _Reader(data).version


def decode_subscription(data: Buffer) -> Subscription:
    """Decode a subscription; fields that its version lacks have their defaults."""
    reader = _Reader(data)
    version = reader.version
    return Subscription(
        topics=tuple(reader.text() for _ in reader.array()),
        user_data=reader.nullable_bytes(),
        owned=tuple(reader.topics()) if version >= 1 else (),
        generation=reader.int32() if version >= 2 else NO_GENERATION,
        rack=reader.nullable_text() if version >= 3 else None,
    )


def encode_subscription(subscription: Subscription, version: int = VERSION_MAX) -> bytes:
    """Encode a subscription; fields that the version lacks are omitted."""
    parts = [_version(version), _INT32.pack(len(subscription.topics))]
    parts += [_text(topic) for topic in subscription.topics]
    parts.append(_nullable_bytes(subscription.user_data))
    if version >= 1:
        parts += _topics(subscription.owned)
    if version >= 2:
        parts.append(_INT32.pack(subscription.generation))
    if version >= 3:
        rack = subscription.rack
        parts.append(_INT16.pack(NULL) if rack is None else _text(rack))
    return b"".join(parts)


def decode_assignment(data: Buffer) -> dict[str, tuple[int, ...]]:
    """Decode the partitions by topic; no bytes, as for a member without assignment, are none."""
    if not data:
        return {}
    partitions: dict[str, tuple[int, ...]] = {}
    reader = _Reader(data)
    for topic, numbers in reader.topics():
        partitions[topic] = partitions.get(topic, ()) + numbers
    reader.nullable_bytes()
    return partitions


def has_user_data(assignment: Buffer) -> bool:
    """Whether an assignment contains user data besides the partitions."""
    if not assignment:
        return False
    reader = _Reader(assignment)
    for _ in reader.topics():
        pass
    return bool(reader.nullable_bytes())


def encode_assignment(
    topics: Mapping[str, Sequence[int]], user_data: bytes | None = b"", version: int = 0
) -> bytes:
    """Encode an assignment; its versions follow the subscription's, but all are equal."""
    return b"".join([_version(version), *_topics(topics.items()), _nullable_bytes(user_data)])


class _Reader:
    """Reads values in sequence; every method raises if the bytes end early."""

    __slots__ = ("_position", "_view", "version")

    def __init__(self, data: Buffer) -> None:
        self._view = memoryview(data)
        self._position = 0
        version = self._int16()
        if version < 0:
            _fail(f"version {version} does not exist")
        self.version = min(version, VERSION_MAX)

    def int32(self) -> int:
        (value,) = _INT32.unpack(self._take(_INT32.size))
        return int(value)

    def array(self) -> range:
        """The indices of the elements that follow."""
        count = self.int32()
        if count < 0:
            _fail(f"array length {count}")
        return range(count)

    def text(self) -> str:
        text = self.nullable_text()
        return _fail("null string") if text is None else text

    def nullable_text(self) -> str | None:
        size = self._int16()
        if size == NULL:
            return None
        try:
            return str(self._take(size), "utf-8")
        except UnicodeDecodeError:
            _fail("string is not UTF-8")

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size == NULL else bytes(self._take(size))

    def topics(self) -> Iterable[tuple[str, tuple[int, ...]]]:
        """Topics, each with its partitions."""
        for _ in self.array():
            yield self.text(), tuple(self.int32() for _ in self.array())

    def _int16(self) -> int:
        (value,) = _INT16.unpack(self._take(_INT16.size))
        return int(value)

    def _take(self, size: int) -> memoryview:
        if size < 0:
            _fail(f"length {size}")
        data = self._view[self._position : self._position + size]
        if len(data) < size:
            _fail(f"expected {size} bytes, got {len(data)}")
        self._position += size
        return data


def _fail(reason: str) -> NoReturn:
    raise ProtocolError(f"invalid consumer protocol bytes: {reason}")


def _version(version: int) -> bytes:
    assert 0 <= version <= VERSION_MAX, version
    return _INT16.pack(version)


def _text(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > TEXT_BYTES_MAX:
        raise EncodeError(f"string of {len(encoded)} bytes exceeds {TEXT_BYTES_MAX}")
    return _INT16.pack(len(encoded)) + encoded


def _nullable_bytes(data: bytes | None) -> bytes:
    return _INT32.pack(NULL) if data is None else _INT32.pack(len(data)) + data


def _topics(topics: Iterable[tuple[str, Sequence[int]]]) -> list[bytes]:
    parts = [
        b"".join([_text(topic), _INT32.pack(len(numbers)), *map(_INT32.pack, numbers)])
        for topic, numbers in topics
    ]
    return [_INT32.pack(len(parts)), *parts]
