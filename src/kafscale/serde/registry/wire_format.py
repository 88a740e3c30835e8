"""Confluent's wire format, by which a value names its schema in a registry.

    0x00 │ schema ID, 4 bytes │ payload                       Avro and JSON
    0x00 │ schema ID, 4 bytes │ message indexes │ payload     Protobuf

Message indexes select a message of the schema file: a count, the index of the message, of the one
nested in it, and so on, as zigzag varints; a single zero stands for the first message. Pure.
"""

import struct
from typing import Final

from kafscale.errors import InvalidRecordError

MAGIC: Final = 0
HEADER_BYTES: Final = 5
_HEADER: Final = struct.Struct(">BI")
_NESTING_MAX: Final = 32
_VARINT_BYTES_MAX: Final = 5
assert _HEADER.size == HEADER_BYTES


def split(value: bytes) -> tuple[int, bytes]:
    """Split a value into the schema ID and the rest.

    >>> split(bytes([0, 0, 0, 1, 2, 77]))
    (258, b'M')
    """
    if len(value) < HEADER_BYTES:
        raise InvalidRecordError(f"{len(value)} bytes are too few for a schema ID")
    magic, schema_id = _HEADER.unpack_from(value)
    if magic != MAGIC:
        raise InvalidRecordError(
            f"the value begins with byte {magic} instead of 0, and names no schema"
        )
    return schema_id, value[HEADER_BYTES:]


def split_indexes(payload: bytes) -> tuple[tuple[int, ...], bytes]:
    """Split a payload into the message indexes and the rest.

    >>> split_indexes(bytes([4, 2, 0, 77]))
    ((1, 0), b'M')
    """
    count, position = _read_varint(payload, 0)
    if count == 0:
        return (0,), payload[position:]
    if not 0 < count <= _NESTING_MAX:
        raise InvalidRecordError(f"invalid number of message indexes: {count}")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(payload, position)
        indexes.append(index)
    return tuple(indexes), payload[position:]


def join(schema_id: int, payload: bytes) -> bytes:
    """Prepend a schema ID; the counterpart of `split`.

    >>> join(258, b"M") == bytes([0, 0, 0, 1, 2, 77])
    True
    """
    return _HEADER.pack(MAGIC, schema_id) + payload


def join_indexes(indexes: tuple[int, ...], payload: bytes) -> bytes:
    """Prepend message indexes; the counterpart of `split_indexes`.

    >>> list(join_indexes((1, 0), b"M")), list(join_indexes((0,), b"M"))
    ([4, 2, 0, 77], [0, 77])
    """
    if indexes == (0,):
        return b"\0" + payload
    numbers = (len(indexes), *indexes)
    return b"".join(map(_encode_varint, numbers)) + payload


def _encode_varint(number: int) -> bytes:
    assert number >= 0
    number <<= 1  # Zigzag encoding; the numbers are not negative.
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _read_varint(payload: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(payload[position : position + _VARINT_BYTES_MAX]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position + shift + 1
    raise InvalidRecordError("the message indexes are truncated")
