"""Fixes the header checksum of LZ4 frames of magic 0.

In magic 0, Kafka's clients computed this byte over the wrong range (KAFKA-3160), and brokers and
consumers ignore it. The decompressor used here does not, so the correct byte is written before
decompression. The checksum is XXH32, implemented for the few bytes of a frame descriptor.
"""

from typing import Final

from kafscale.errors import CorruptBatchError

FRAME_MAGIC: Final = b"\x04\x22\x4d\x18"
_CONTENT_SIZE_FLAG: Final = 0x08
_DICTIONARY_ID_FLAG: Final = 0x01

_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1
_MASK: Final = 0xFFFF_FFFF


def fix_header_checksum(frame: bytes) -> bytes:
    """Return the frame with the correct header checksum."""
    if frame[:4] != FRAME_MAGIC or len(frame) < 7:
        raise CorruptBatchError("invalid LZ4 frame header")
    flags = frame[4]
    end = 6
    end += 8 if flags & _CONTENT_SIZE_FLAG else 0
    end += 4 if flags & _DICTIONARY_ID_FLAG else 0
    checksum = xxh32_short(frame[4:end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


def xxh32_short(data: bytes) -> int:
    """XXH32 with seed 0, for less than 16 bytes (without the main loop)."""
    assert len(data) < 16
    state = _PRIME_5 + len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little")
        state = _rotate(state + word * _PRIME_3, 17) * _PRIME_4
    for byte in data[whole:]:
        state = _rotate(state + byte * _PRIME_5, 11) * _PRIME_1
    state &= _MASK
    state = (state ^ state >> 15) * _PRIME_2 & _MASK
    state = (state ^ state >> 13) * _PRIME_3 & _MASK
    return state ^ state >> 16


def _rotate(value: int, count: int) -> int:
    value &= _MASK
    return value << count | value >> 32 - count
