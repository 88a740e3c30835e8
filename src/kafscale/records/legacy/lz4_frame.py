"""The header checksum of LZ4 frames, for the sake of magic 0.

Before message format 1, Kafka's clients computed this byte over the wrong range (KAFKA-3160), and
brokers and consumers have since ignored it in magic 0. Our decompressor does not ignore it, so we
write the right byte over it. The checksum is XXH32, here for the few bytes of a frame descriptor
only; the frames themselves are left to the compression module.
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


def mend_header(frame: bytes) -> bytes:
    """The same frame with the header checksum that its descriptor asks for."""
    if frame[:4] != FRAME_MAGIC or len(frame) < 7:
        raise CorruptBatchError("an LZ4 frame does not begin as one")
    flags = frame[4]
    end = 6
    end += 8 if flags & _CONTENT_SIZE_FLAG else 0
    end += 4 if flags & _DICTIONARY_ID_FLAG else 0
    checksum = xxh32_short(frame[4:end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


def xxh32_short(data: bytes) -> int:
    """XXH32 with seed 0 of less than 16 bytes, the length from which its main loop would begin."""
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
