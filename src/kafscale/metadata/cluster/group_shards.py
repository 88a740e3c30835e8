"""Shards: consumer groups are spread over fifty of them, which are assigned like partitions.

The law: a group's shard follows from its name alone, by the rule by which Kafka finds the partition
of its topic `__consumer_offsets`. That name stands for the shards in assignments here; there is no
such topic, and nobody may create one.
"""

from typing import Final

SHARDS_TOPIC: Final = "__consumer_offsets"
SHARD_COUNT: Final = 50


def shard_of(group_id: str) -> int:
    """The shard of a group.

    >>> shard_of("test-group"), shard_of("")
    (12, 0)
    """
    hashed = 0
    for unit in memoryview(group_id.encode("utf-16-le", "surrogatepass")).cast("H"):
        hashed = (31 * hashed + unit) & 0xFFFF_FFFF
    if hashed >= 0x8000_0000:
        hashed -= 0x1_0000_0000
    return (hashed & 0x7FFF_FFFF) % SHARD_COUNT
