"""Unsigned varints and tag sections: what compiled codecs call instead of inlining.

Hostile bytes end here in `ProtocolError`; running off the end raises `IndexError`, which every
compiled decoder turns into one.
"""

from collections.abc import Callable

from kafscale.errors import ProtocolError

UVARINT_BYTES_MAX = 5

SMALL = tuple(bytes((value,)) for value in range(128))
"""Every uvarint of one byte, ready to write."""


def encode(value: int) -> bytes:
    if value < 1 << 7:
        return SMALL[value]
    if value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 1 << 21:  # The size of most record fields, so that it deserves a line of its own.
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode(view: memoryview, position: int) -> tuple[int, int]:
    """The uvarint at `position`, and the position after it."""
    return continued(view, position + 1, view[position])


def continued(view: memoryview, position: int, first: int) -> tuple[int, int]:
    """The uvarint whose `first` byte was read already, and the position after it."""
    if first < 128:
        return first, position
    value = first + (view[position] - 1 << 7)
    position += 1
    return (value, position) if value < 1 << 14 else continued_from_two(view, position, value)


def continued_from_two(view: memoryview, position: int, value: int) -> tuple[int, int]:
    """The same, where `value` is the sum of two bytes, the second's continuation bit included."""
    for shift in range(14, 7 * UVARINT_BYTES_MAX, 7):
        # The bit that says "there is more" stands where the next byte's lowest bit belongs.
        value += view[position] - 1 << shift
        position += 1
        if value < 1 << shift + 7:
            return value, position
    raise ProtocolError(f"a varint is longer than {UVARINT_BYTES_MAX} bytes")


def skip_tags(view: memoryview, position: int, first: int) -> int:
    """Pass over a tag section of which we know no tag; its count began with the byte `first`."""
    count, position = continued(view, position, first)
    for _ in range(count):  # Each round takes two bytes or raises: the view bounds the loop.
        _, position = decode(view, position)
        size_bytes, position = decode(view, position)
        position += size_bytes
    return position


def write_tags(write: Callable[[bytes], object], tags: list[tuple[int, bytes]]) -> None:
    """Write a tag section; `tags` come in the order of their numbers."""
    write(encode(len(tags)))
    for number, value in tags:
        write(encode(number))
        write(encode(len(value)))
        write(value)
