"""Unsigned varints and tagged fields: functions that generated codecs call.

Malformed input raises `ProtocolError`; reading past the end raises `IndexError`, which generated
decoders convert.
"""

from collections.abc import Callable

from kafscale.errors import ProtocolError

UVARINT_BYTES_MAX = 5

SMALL = tuple(bytes((value,)) for value in range(128))
"""All one-byte varints."""


def encode(value: int) -> bytes:
    if value < 1 << 7:
        return SMALL[value]
    if value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 1 << 21:  # The typical size of record fields.
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode(view: memoryview, position: int) -> tuple[int, int]:
    """The varint at `position`, and the position after it."""
    return continued(view, position + 1, view[position])


def continued(view: memoryview, position: int, first: int) -> tuple[int, int]:
    """The varint whose `first` byte was already read, and the position after it."""
    if first < 128:
        return first, position
    value = first + (view[position] - 1 << 7)
    position += 1
    return (value, position) if value < 1 << 14 else continued_from_two(view, position, value)


def continued_from_two(view: memoryview, position: int, value: int) -> tuple[int, int]:
    """The same, where `value` is the sum of two bytes including the continuation bit."""
    for shift in range(14, 7 * UVARINT_BYTES_MAX, 7):
        # The continuation bit is at the position of the next byte's lowest bit.
        value += view[position] - 1 << shift
        position += 1
        if value < 1 << shift + 7:
            return value, position
    raise ProtocolError(f"a varint is longer than {UVARINT_BYTES_MAX} bytes")


def skip_tags(view: memoryview, position: int, first: int) -> int:
    """Skip tagged fields that are all unknown; their count starts with the byte `first`."""
    count, position = continued(view, position, first)
    for _ in range(
        count
    ):  # Each iteration consumes two bytes or raises, so the view bounds the loop.
        _, position = decode(view, position)
        size_bytes, position = decode(view, position)
        position += size_bytes
    return position


def write_tags(write: Callable[[bytes], object], tags: list[tuple[int, bytes]]) -> None:
    """Write tagged fields, which are sorted by number."""
    write(encode(len(tags)))
    for number, value in tags:
        write(encode(number))
        write(encode(len(value)))
        write(value)
