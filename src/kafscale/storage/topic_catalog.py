"""The topic catalog: a JSON object that lists all topics, for readers without etcd.

The controller overwrites it whenever topics change. It is derived from the metadata store, and may
be a few seconds behind. If the metadata store has to be restored from an old snapshot, the catalog
shows which topics were created and deleted since; so it contains the cluster id and the revision of
the metadata store.
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
    """32 hexadecimal digits."""
    partition_count: int
    configs: Mapping[str, str] = {}
    created_ms: int = 0
    config_version: int = 0
    """The topic's version in the metadata store; 0 if unknown."""

    @property
    def id(self) -> bytes:
        return bytes.fromhex(self.topic_id)


class Catalog(msgspec.Struct, frozen=True):
    """All topics, sorted by name."""

    topics: tuple[CatalogTopic, ...]
    version: int = VERSION
    cluster_id: str = ""
    """The cluster that owns the topics; empty if unknown."""
    revision: int = 0
    """The metadata store revision of this content; 0 if unknown."""


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


async def read(store: ObjectStore, namespace: str) -> tuple[Catalog, int]:
    """Read the catalog of a namespace, and when it was written."""
    key = object_keys.catalog_key(namespace)
    modified_ms = (await store.head(key)).modified_ms
    return decode(key, bytes(await store.get(key))), modified_ms


class CatalogWriter:
    """Writes the catalog of a cluster when its topics have changed."""

    def __init__(self, store: ObjectStore, namespace: str, cluster_id: str = "") -> None:
        self._store = store
        self._key = object_keys.catalog_key(namespace)
        self._cluster_id = cluster_id
        self._written: list[CatalogTopic] | None = None

    async def write(self, topics: Iterable[CatalogTopic], revision: int = 0) -> None:
        """Write the topics as of a revision; does nothing if they have not changed."""
        listed = sorted(topics, key=lambda topic: topic.name)
        if listed != self._written:
            data = encode(listed, cluster_id=self._cluster_id, revision=revision)
            await self._store.put(self._key, [data], create=False)
            self._written = listed
