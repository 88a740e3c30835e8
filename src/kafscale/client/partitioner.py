"""Chooses the partition of a record: by the hash of its key, or sticky without a key.

Records with the same key go to the same partition, the one that Kafka's Java producer chooses.
Records without a key go to one partition until a batch of it is full, so that batches are large,
and then to another one.
"""

from random import Random
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_UINT32: Final = 0xFFFF_FFFF
_POSITIVE: Final = 0x7FFF_FFFF


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 of `data`, with Kafka's seed.

    >>> murmur2(b"21") - 2**32, murmur2(b"foobar") - 2**32
    (-973932308, -790332482)
    """
    value = _SEED ^ len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _MULTIPLIER & _UINT32
        word = (word ^ word >> 24) * _MULTIPLIER & _UINT32
        value = (value * _MULTIPLIER & _UINT32) ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _UINT32
    value = (value ^ value >> 13) * _MULTIPLIER & _UINT32
    return value ^ value >> 15


def partition_of(key: bytes, partition_count: int) -> int:
    """The partition of records with this key."""
    return (murmur2(key) & _POSITIVE) % partition_count


class Partitioner:
    """Chooses partitions of one topic."""

    def __init__(self, partition_count: int, random: Random) -> None:
        assert partition_count > 0
        self._partition_count = partition_count
        self._random = random
        self._sticky = random.randrange(partition_count)

    def choose(self, key: bytes | None) -> int:
        if key is None:
            return self._sticky
        return partition_of(key, self._partition_count)

    def batch_filled(self, partition: int) -> None:
        """Choose another sticky partition if this is the current one."""
        if partition == self._sticky and self._partition_count > 1:
            step = self._random.randrange(1, self._partition_count)
            self._sticky = (partition + step) % self._partition_count
