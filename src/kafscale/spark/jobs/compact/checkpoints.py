"""Up to where partitions have been compacted: small objects that compaction leaves for the next.

    {namespace}/_catalog/compaction/{topic}.json

The law: nothing depends on them but whether compaction is worthwhile. A mark that is lost, or of
a topic that had the same name, means that everything is dirty.
"""

from collections.abc import Mapping

import msgspec

from kafscale.errors import ObjectNotFoundError
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.blocking import BlockingObjectStore


class Marks(msgspec.Struct, frozen=True):
    """The ends of what is clean in the partitions of a topic."""

    topic_id: str
    """As 32 hexadecimal digits."""
    ends: dict[int, int] = {}


def marks_key(namespace: str, topic: str) -> str:
    return f"{marks_prefix(namespace)}{topic}.json"


def marks_prefix(namespace: str) -> str:
    return f"{namespace}/{object_keys.CATALOG_DIRECTORY}/compaction/"


def read(store: BlockingObjectStore, namespace: str, topic: str, topic_id: bytes) -> dict[int, int]:
    """Up to where each partition of a topic is clean, as far as is known."""
    try:
        data = store.get(marks_key(namespace, topic))
        marks = msgspec.json.decode(data, type=Marks)
    except (ObjectNotFoundError, msgspec.DecodeError):
        return {}
    return dict(marks.ends) if marks.topic_id == topic_id.hex() else {}


def write(
    store: BlockingObjectStore, namespace: str, topic: str, topic_id: bytes, ends: Mapping[int, int]
) -> None:
    """Note up to where partitions are clean now; what is known of others stays."""
    known = read(store, namespace, topic, topic_id)
    marks = Marks(topic_id.hex(), known | dict(ends))
    store.put(marks_key(namespace, topic), [msgspec.json.encode(marks)], create=False)
