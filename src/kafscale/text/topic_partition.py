"""Names of topics and partitions: as keys of mappings, and in the keys of objects."""

from typing import Final

TopicPartition = tuple[str, int]
"""A topic name and a partition index."""

ID_SEPARATOR: Final = "@"
"""Not allowed in topic names."""


def topic_directory(name: str, topic_id: bytes | None) -> str:
    """The part of object keys that stands for a topic.

    It is the name, as in the published layout. The id is added if a topic of this name was deleted
    before: a write or a deletion that takes effect late then never meets objects of the new topic.

    >>> topic_directory("orders", None)
    'orders'
    >>> topic_directory("orders", bytes(range(16)))
    'orders@000102030405060708090a0b0c0d0e0f'
    """
    return name if topic_id is None else f"{name}{ID_SEPARATOR}{topic_id.hex()}"


def topic_of_directory(directory: str) -> str:
    """The name of the topic that a directory stands for."""
    return directory.partition(ID_SEPARATOR)[0]


def id_of_directory(directory: str) -> bytes | None:
    """The topic id in a directory, if there is one."""
    topic_id = directory.partition(ID_SEPARATOR)[2]
    return bytes.fromhex(topic_id) if topic_id else None
