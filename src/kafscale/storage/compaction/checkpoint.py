"""Checkpoints: up to which offset the partitions of a topic are compacted.

Like Kafka's `cleaner-offset-checkpoint`, one object for each topic, which the owners of partitions
and the Spark job share:

    {namespace}/_catalog/compaction/{topic}.json

Invariant: below the clean end of a partition, no record has a newer one with the same key below the
clean end. Owners rely on it to drop tombstones, so a checkpoint is written after the segments. If
it is lost, belongs to a deleted topic of the same name, or has another version, everything counts
as dirty.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kafscale.errors import (
    ObjectChangedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreUnavailableError,
)
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.store import ObjectStore
from kafscale.text.json import DECODE_ERRORS

VERSION: Final = 2
"""In version 1, a record that was kept only because a segment needs one could lie below the end."""

WRITES_MAX: Final = 5
"""How often a checkpoint is written again, because another broker or job has written it."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The clean ends of the partitions of a topic."""

    topic_id: str
    """As 32 hexadecimal digits."""
    ends: dict[int, int] = {}
    version: int = 1


def checkpoint_key(namespace: str, topic: str) -> str:
    return f"{checkpoint_prefix(namespace)}{topic}.json"


def checkpoint_prefix(namespace: str) -> str:
    return f"{namespace}/{object_keys.CATALOG_DIRECTORY}/compaction/"


async def read_checkpoint(
    store: ObjectStore, namespace: str, topic: str, topic_id: bytes
) -> dict[int, int]:
    """Return the known clean ends of a topic by partition."""
    try:
        data = await store.get(checkpoint_key(namespace, topic))
        checkpoint = msgspec.json.decode(data, type=Checkpoint)
    except (ObjectNotFoundError, *DECODE_ERRORS):
        return {}
    is_valid = checkpoint.topic_id == topic_id.hex() and checkpoint.version == VERSION
    return dict(checkpoint.ends) if is_valid else {}


async def write_checkpoint(
    store: ObjectStore, namespace: str, topic: str, topic_id: bytes, ends: Mapping[int, int]
) -> None:
    """Write the clean ends of some partitions, and keep those of the others."""
    key = checkpoint_key(namespace, topic)
    for _ in range(WRITES_MAX):
        try:
            etag = (await store.head(key)).etag
        except ObjectNotFoundError:
            etag = None
        known = await read_checkpoint(store, namespace, topic, topic_id)
        checkpoint = Checkpoint(topic_id.hex(), known | dict(ends), VERSION)
        data = [msgspec.json.encode(checkpoint)]
        try:
            if etag is None:
                return await store.put(key, data)
            return await store.replace(key, data, etag)
        except (ObjectExistsError, ObjectChangedError):
            continue
    raise StoreUnavailableError(f"{key} is being written by others")
