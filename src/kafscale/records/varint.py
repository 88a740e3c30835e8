"""Variable-length integers of magic 2: zig-zag, seven bits per byte, least significant first.

A varint has 32 bits in at most five bytes, a varlong 64 bits in at most ten. Reading never goes
past the end of the buffer and rejects numbers that exceed the width, so that they cannot overflow
other fields. Encodings longer than necessary are accepted, as in Kafka.
"""

from typing import Final

from kafscale.errors import InvalidRecordError

VARINT_BITS: Final = 32
VARLONG_BITS: Final = 64


def read_varint(buffer: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position`, and the position after it."""
    return _read(buffer, position, VARINT_BITS)


def read_varlong(buffer: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position`, and the position after it."""
    return _read(buffer, position, VARLONG_BITS)


def append_varint(output: bytearray, value: int) -> None:
    _append(output, value, VARINT_BITS)


def append_varlong(output: bytearray, value: int) -> None:
    _append(output, value, VARLONG_BITS)


def _read(buffer: bytes, position: int, bits: int) -> tuple[int, int]:
    raw = 0
    shift = 0
    try:
        while (byte := buffer[position]) > 0x7F:
            raw |= (byte & 0x7F) << shift
            shift += 7
            position += 1
            if shift >= bits:
                raise InvalidRecordError(f"a variable-length integer exceeds {bits} bits")
    except IndexError:
        raise InvalidRecordError("a variable-length integer runs past the end") from None
    raw |= byte << shift
    if raw >> bits:
        raise InvalidRecordError(f"a variable-length integer exceeds {bits} bits")
    return (raw >> 1) ^ -(raw & 1), position + 1


def _append(output: bytearray, value: int, bits: int) -> None:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise InvalidRecordError(f"{value} does not fit a variable-length integer of {bits} bits")
    raw = (value << 1) ^ (value >> bits - 1)
    while raw > 0x7F:
        output.append(raw & 0x7F | 0x80)
        raw >>= 7
    output.append(raw)
