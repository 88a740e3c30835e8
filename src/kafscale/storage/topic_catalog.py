"""The topic catalog: a JSON object that lists all topics, for readers without etcd.

The controller writes it whenever topics change. It is derived from the metadata store, and may
be a few seconds behind. It also lists the ids of deleted topics of which the WAL may still have
records: a topic id that is in neither list is newer than the catalog. If the metadata store has to
be restored from an old snapshot, the catalog shows which topics were created and deleted since; so
it contains the cluster id and the revision of the metadata store.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kafscale.errors import DamagedObjectError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.store import ObjectStore
from kafscale.text.json import DECODE_ERRORS
from kafscale.text.topic_partition import topic_directory

logger = get_logger(__name__)

VERSION: Final = 1

_ID: Final = re.compile("[0-9a-f]{32}")


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
    id_in_keys: bool = False
    """Whether the keys of its objects contain its id, because the name was used before."""

    @property
    def id(self) -> bytes:
        return bytes.fromhex(self.topic_id)

    @property
    def directory(self) -> str:
        """The part of object keys that stands for this topic."""
        return topic_directory(self.name, self.id if self.id_in_keys else None)


class Catalog(msgspec.Struct, frozen=True):
    """All topics, sorted by name, and recently deleted ones."""

    topics: tuple[CatalogTopic, ...]
    version: int = VERSION
    cluster_id: str = ""
    """The cluster that owns the topics; empty if unknown."""
    revision: int = 0
    """The metadata store revision of this content; 0 if unknown."""
    deleted_topic_ids: tuple[str, ...] = ()
    """Topics whose deletion is still on record, as hexadecimal digits, ascending."""

    @property
    def deleted_ids(self) -> frozenset[bytes]:
        return frozenset(map(bytes.fromhex, self.deleted_topic_ids))


def encode(
    topics: Iterable[CatalogTopic],
    *,
    cluster_id: str = "",
    revision: int = 0,
    deleted_ids: Iterable[bytes] = (),
) -> bytes:
    by_name = tuple(sorted(topics, key=lambda topic: topic.name))
    deleted = tuple(sorted(topic_id.hex() for topic_id in deleted_ids))
    return msgspec.json.encode(
        Catalog(by_name, cluster_id=cluster_id, revision=revision, deleted_topic_ids=deleted)
    )


def decode(key: str, data: bytes) -> Catalog:
    try:
        catalog = msgspec.json.decode(data, type=Catalog)
    except DECODE_ERRORS as error:
        raise DamagedObjectError(key, str(error)) from None
    if catalog.version != VERSION:
        raise DamagedObjectError(key, f"version {catalog.version} is unknown")
    topic_ids = [topic.topic_id for topic in catalog.topics]
    for topic_id in (*topic_ids, *catalog.deleted_topic_ids):
        if not _ID.fullmatch(topic_id):
            raise DamagedObjectError(key, f"{topic_id!r} is not a topic id")
    return catalog


async def read(store: ObjectStore, namespace: str) -> tuple[Catalog, int]:
    """Read the catalog of a namespace, and when it was written."""
    key = object_keys.catalog_key(namespace)
    modified_ms = (await store.head(key)).modified_ms
    return decode(key, bytes(await store.get(key))), modified_ms


async def find_directory(store: ObjectStore, namespace: str, topic: str, topic_id: bytes) -> str:
    """The part of object keys that stands for a topic.

    The catalog may not list a new topic yet; then the topic's objects say whether its keys have
    its id.
    """
    try:
        catalog, _ = await read(store, namespace)
    except (ObjectNotFoundError, DamagedObjectError):
        catalog = Catalog(())
    for each in catalog.topics:
        if each.topic_id == topic_id.hex():
            return each.directory
    with_id = topic_directory(topic, topic_id)
    async for _ in store.list(object_keys.topic_prefix(namespace, with_id)):
        return with_id
    return topic


_Content = tuple[list[CatalogTopic], frozenset[bytes]]
"""Topics, by name, and the ids of deleted topics."""


def _content(topics: Iterable[CatalogTopic], deleted_ids: Iterable[bytes]) -> _Content:
    return sorted(topics, key=lambda topic: topic.name), frozenset(deleted_ids)


class CatalogWriter:
    """Writes the catalog of a cluster when its topics have changed.

    Invariant: a catalog of another cluster is never overwritten, and one of this cluster only by a
    newer one: a former controller may be late. Only a restore, whose metadata is older than what it
    has read from the catalog, replaces it in any case.
    """

    def __init__(self, store: ObjectStore, namespace: str, cluster_id: str = "") -> None:
        self._store = store
        self._key = object_keys.catalog_key(namespace)
        self._cluster_id = cluster_id
        self._written: _Content | None = None

    def forget(self) -> None:
        """Another process may have written the catalog since; call it after an election."""
        self._written = None

    async def write(
        self, topics: Iterable[CatalogTopic], revision: int = 0, deleted_ids: Iterable[bytes] = ()
    ) -> None:
        """Write the topics as of a revision; does nothing if they have not changed."""
        content = _content(topics, deleted_ids)
        if content == self._written:
            return
        existing, etag = await self._existing()
        if existing is not None and not self._may_replace(existing, revision):
            return
        await self._put(content, revision, etag)

    async def replace(
        self, topics: Iterable[CatalogTopic], revision: int, deleted_ids: Iterable[bytes] = ()
    ) -> None:
        """Write the topics that were restored; the existing catalog was taken into account."""
        _, etag = await self._existing()
        await self._put(_content(topics, deleted_ids), revision, etag)

    async def _existing(self) -> tuple[Catalog | None, str | None]:
        """The catalog and its ETag, if there is one."""
        etag = None
        try:
            etag = (await self._store.head(self._key)).etag
            return decode(self._key, bytes(await self._store.get(self._key))), etag
        except ObjectNotFoundError:
            return None, None
        except DamagedObjectError as error:
            logger.warning("damaged topic catalog replaced", key=error.key, reason=error.reason)
            return None, etag

    def _may_replace(self, existing: Catalog, revision: int) -> bool:
        if existing.cluster_id not in {"", self._cluster_id}:
            logger.error(
                "topic catalog belongs to another cluster",
                cluster_id=self._cluster_id,
                other_cluster_id=existing.cluster_id,
            )
            return False
        if existing.revision > revision:
            logger.warning(
                "topic catalog is newer", revision=revision, catalog_revision=existing.revision
            )
            return False
        return True

    async def _put(self, content: _Content, revision: int, etag: str | None) -> None:
        """Put the catalog, unless it has changed since it was read."""
        topics, deleted_ids = content
        data = [
            encode(topics, cluster_id=self._cluster_id, revision=revision, deleted_ids=deleted_ids)
        ]
        if etag is None:
            await self._store.put(self._key, data)
        else:
            await self._store.replace(self._key, data, etag)
        self._written = content
