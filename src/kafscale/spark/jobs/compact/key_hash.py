"""Hashes record keys with SipHash-2-4 to 128 bits, compiled.

Compaction drops a record if a newer one has the same key, so a collision of two keys would lose a
record. Hence a keyed hash of 128 bits with a random secret for every run: the probability that two
of n keys collide is n² / 2^129, which for a billion keys is 10^-21, far below that of a memory
error. Since the secret is not known in advance, colliding keys cannot be prepared, as they could be
for an unkeyed hash of any width. Shuffling the keys themselves would be exact, but costs all their
bytes.

As in `decoder_kernel`, every index is checked before it is used.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kafscale.spark.codec.decoder_kernel import Spans, compiled, inlined

SECRET_BYTES: Final = 16

_WORD_BYTES: Final = 8
_V0: Final = np.uint64(0x736F6D6570736575)
_V1: Final = np.uint64(0x646F72616E646F6D)
_V2: Final = np.uint64(0x6C7967656E657261)
_V3: Final = np.uint64(0x7465646279746573)
_WIDE: Final = np.uint64(0xEE)
_MORE: Final = np.uint64(0xDD)
_BITS: Final = np.uint64(64)
_EIGHT: Final = np.uint64(8)

_State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@inlined
def _rotate_left(value: np.uint64, bits: int) -> np.uint64:
    left = np.uint64(bits)
    return (value << left) | (value >> (_BITS - left))


@inlined
def _round(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> _State:
    v0 = v0 + v1
    v1 = _rotate_left(v1, 13) ^ v0
    v0 = _rotate_left(v0, 32)
    v2 = v2 + v3
    v3 = _rotate_left(v3, 16) ^ v2
    v0 = v0 + v3
    v3 = _rotate_left(v3, 21) ^ v0
    v2 = v2 + v1
    v1 = _rotate_left(v1, 17) ^ v2
    v2 = _rotate_left(v2, 32)
    return v0, v1, v2, v3


@inlined
def _word(source: NDArray[np.uint8], position: int, count: int) -> np.uint64:
    """Return at most eight bytes as a little-endian integer."""
    word = np.uint64(0)
    for index in range(count):
        word |= np.uint64(source[position + index]) << (_EIGHT * np.uint64(index))
    return word


@compiled
def _hash(
    source: NDArray[np.uint8], position: int, length: int, secret: NDArray[np.uint64]
) -> tuple[np.uint64, np.uint64]:
    v0, v1 = _V0 ^ secret[0], _V1 ^ secret[1] ^ _WIDE
    v2, v3 = _V2 ^ secret[0], _V3 ^ secret[1]
    end = position + length
    while end - position >= _WORD_BYTES:
        word = _word(source, position, _WORD_BYTES)
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        position += _WORD_BYTES
    word = _word(source, position, end - position) | (np.uint64(length & 0xFF) << np.uint64(56))
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= _WIDE
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= _MORE
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3


@compiled
def hash_keys(  # noqa: PLR0917 - compiled functions take no keywords.
    source: NDArray[np.uint8],
    keys: Spans,
    count: int,
    secret: NDArray[np.uint64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
) -> None:
    """Hash the first `count` keys; the hash of a null key is zero."""
    if secret.size < 2:
        return
    rows = min(count, keys.positions.size, keys.bounds.size - 1, first.size, second.size)
    for row in range(rows):
        position = keys.positions[row]
        length = int(keys.bounds[row + 1]) - int(keys.bounds[row])
        first[row] = 0
        second[row] = 0
        if position >= 0 and length >= 0 and position <= source.size - length:
            low, high = _hash(source, position, length, secret)
            first[row] = np.int64(low)
            second[row] = np.int64(high)


def secret_of(secret: bytes) -> NDArray[np.uint64]:
    """Return the secret in the form that `hash_keys` takes."""
    assert len(secret) == SECRET_BYTES
    return np.frombuffer(secret, "<u8").astype(np.uint64)
