"""Group shards: consumer groups are hashed to fifty shards, which are assigned like partitions.

A group's shard follows from its id, by the function that Kafka uses for partitions of the topic
`__consumer_offsets`. In assignments that name stands for the shards; no such topic exists, and
clients cannot create it.
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
