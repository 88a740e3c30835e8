"""The catalog: the topics that there are, as an object for those who read the bucket alone.

It is JSON, written over by the controller whenever topics change. The law: it is derived from the
metadata store, which is the truth, and may be some seconds behind it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kafscale.errors import DamagedObjectError
from kafscale.storage import layout
from kafscale.storage.objects.base import ObjectStore

VERSION: Final = 1


class CatalogTopic(msgspec.Struct, frozen=True):
    """A topic in the catalog."""

    name: str
    topic_id: str
    """As 32 hexadecimal digits."""
    partition_count: int
    configs: Mapping[str, str] = {}


class Catalog(msgspec.Struct, frozen=True):
    """All topics, by name."""

    topics: tuple[CatalogTopic, ...]
    version: int = VERSION


def encode(topics: Iterable[CatalogTopic]) -> bytes:
    return msgspec.json.encode(Catalog(tuple(sorted(topics, key=lambda topic: topic.name))))


def decode(key: str, data: bytes) -> Catalog:
    try:
        catalog = msgspec.json.decode(data, type=Catalog)
    except msgspec.DecodeError as error:
        raise DamagedObjectError(key, str(error)) from None
    if catalog.version != VERSION:
        raise DamagedObjectError(key, f"version {catalog.version} is unknown")
    return catalog


class CatalogWriter:
    """Writes the catalog of a namespace, when it has changed."""

    def __init__(self, store: ObjectStore, namespace: str) -> None:
        self._store = store
        self._key = layout.catalog_key(namespace)
        self._written = b""

    async def write(self, topics: Iterable[CatalogTopic]) -> None:
        data = encode(topics)
        if data != self._written:
            await self._store.put(self._key, [data], create=False)
            self._written = data
