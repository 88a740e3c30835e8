"""The catalog: the topics that there are, as an object for those who read the bucket alone.

It is JSON, written over by the controller whenever topics change. The law: it is derived from the
metadata store, which is the truth, and may be some seconds behind it. If that store has to be
restored from an old snapshot, the catalog is what remembers the topics that have come and gone
since; so it says of which cluster it tells, and at which revision of the store it was true.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kafscale.errors import DamagedObjectError
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.store import ObjectStore

VERSION: Final = 1


class CatalogTopic(msgspec.Struct, frozen=True):
    """A topic in the catalog."""

    name: str
    topic_id: str
    """As 32 hexadecimal digits."""
    partition_count: int
    configs: Mapping[str, str] = {}
    created_ms: int = 0
    config_version: int = 0
    """As the metadata store counts the changes of the topic; 0 where nobody has said it."""


class Catalog(msgspec.Struct, frozen=True):
    """All topics, by name."""

    topics: tuple[CatalogTopic, ...]
    version: int = VERSION
    cluster_id: str = ""
    """Of the cluster whose topics these are; empty where nobody has said it."""
    revision: int = 0
    """Of the metadata store, at which these were the topics; 0 where nobody has said it."""


def encode(topics: Iterable[CatalogTopic], *, cluster_id: str = "", revision: int = 0) -> bytes:
    by_name = tuple(sorted(topics, key=lambda topic: topic.name))
    return msgspec.json.encode(Catalog(by_name, cluster_id=cluster_id, revision=revision))


def decode(key: str, data: bytes) -> Catalog:
    try:
        catalog = msgspec.json.decode(data, type=Catalog)
    except msgspec.DecodeError as error:
        raise DamagedObjectError(key, str(error)) from None
    if catalog.version != VERSION:
        raise DamagedObjectError(key, f"version {catalog.version} is unknown")
    return catalog


class CatalogWriter:
    """Writes the catalog of a cluster, when its topics have changed."""

    def __init__(self, store: ObjectStore, namespace: str, cluster_id: str = "") -> None:
        self._store = store
        self._key = object_keys.catalog_key(namespace)
        self._cluster_id = cluster_id
        self._written: list[CatalogTopic] | None = None

    async def write(self, topics: Iterable[CatalogTopic], revision: int = 0) -> None:
        """Write the topics that there were at a revision; it is not news that they still are."""
        listed = sorted(topics, key=lambda topic: topic.name)
        if listed != self._written:
            data = encode(listed, cluster_id=self._cluster_id, revision=revision)
            await self._store.put(self._key, [data], create=False)
            self._written = listed
