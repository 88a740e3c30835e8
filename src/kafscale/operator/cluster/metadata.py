"""What the clusters' etcds know, as the operator sees it: opened once for each cluster, and kept.

The laws: a cluster's metadata is read without waiting, and kept current by watches. Other settings
open it anew, and the former is closed when the new one is there, so that a certificate is changed
without a gap. Whoever is still at work with one that was closed gets `StoreUnavailableError`, and
tries again with what `get` says then. How settings are found is left to `connection`.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.cluster.restore_marker import find_pending_restore
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import BrokerInfo, Topic
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.store.etcd import EtcdStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

CHANGE_MS_MAX: Final = 15_000
"""How long a change of a topic may take; what was not done by then is tried again."""


class ClusterMetadata:
    """Topics, brokers and who owns what, of one cluster."""

    def __init__(self, store: MetadataStore, object_namespace: str) -> None:
        """`object_namespace` is what the cluster's objects begin with; topics remember it."""
        self._store = store
        self.catalog = Catalog(store, namespace=object_namespace, timeout_ms=CHANGE_MS_MAX)
        """Where topics are looked up and changed."""
        self.view = ClusterCache(store)
        """Who is alive, who is the controller, and who owns what."""
        self._cluster_id = ""
        self._closed: list[Callable[[], None]] = []

    @property
    def is_connected(self) -> bool:
        """Whether changes arrive here; if not, all that is seen may be out of date."""
        return self.catalog.connected and self.view.connected

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.catalog.topics

    @property
    def brokers(self) -> Mapping[int, BrokerInfo]:
        """The brokers that are registered, by their ids."""
        return self.view.brokers

    async def is_settled(self) -> bool:
        """Whether it is not older than the bucket, from a snapshot; if so, brokers come first."""
        return await find_pending_restore(self._store) is None

    async def cluster_id(self) -> str:
        """The id that brokers have given the cluster; empty before the first of them came."""
        if not self._cluster_id and (entry := await self._store.get(keys.CLUSTER_ID)):
            self._cluster_id = entry.value.decode()
        return self._cluster_id

    def when_closed(self, listener: Callable[[], None]) -> None:
        """Call `listener` as soon as nothing here is kept current any more."""
        self._closed.append(listener)

    async def start(self) -> None:
        """Read everything, then follow the store until `close`."""
        await self.catalog.start()
        await self.view.start()

    async def close(self) -> None:
        while self._closed:
            self._closed.pop()()
        await self.view.close()
        await self.catalog.close()
        await self._store.close()


class _Opened(NamedTuple):
    settings: tuple[Etcd, str]
    metadata: ClusterMetadata


class MetadataRegistry:
    """The metadata of every cluster that the operator has opened, by namespace and name."""

    def __init__(self, open_store: Callable[[Etcd], MetadataStore] = EtcdStore) -> None:
        self._open_store = open_store
        self._opened: dict[tuple[str, str], _Opened] = {}

    def get(self, namespace: str, name: str) -> ClusterMetadata | None:
        """The metadata of a cluster; None before it was opened and after it was closed."""
        opened = self._opened.get((namespace, name))
        return opened.metadata if opened else None

    async def find(self, cluster_id: str) -> ClusterMetadata | None:
        """The metadata of the cluster to which brokers have given this id."""
        for opened in list(self._opened.values()):
            with suppress(StoreUnavailableError):
                if await opened.metadata.cluster_id() == cluster_id:
                    return opened.metadata
        return None

    def only(self) -> ClusterMetadata | None:
        """The metadata of the one cluster that there is; None if there are more, or none."""
        opened = list(self._opened.values())
        return opened[0].metadata if len(opened) == 1 else None

    async def open(
        self, namespace: str, name: str, settings: Etcd, object_namespace: str
    ) -> ClusterMetadata:
        """The metadata of a cluster, read by the time that this returns.

        Raises `ConfigError` for files that are of no use, and `StoreUnavailableError`; what was
        open before then stays.
        """
        wanted = settings, object_namespace
        opened = self._opened.get((namespace, name))
        if opened and opened.settings == wanted:
            return opened.metadata
        metadata = ClusterMetadata(self._open_store(settings), object_namespace)
        try:
            await metadata.start()
        except BaseException:
            await metadata.close()
            raise
        await self._replace((namespace, name), _Opened(wanted, metadata))
        log.info("metadata opened", namespace=namespace, cluster=name, etcd=settings.endpoints)
        return metadata

    async def close(self, namespace: str, name: str) -> None:
        """Let go of a cluster that is no more."""
        await self._replace((namespace, name), None)

    async def close_all(self) -> None:
        for key in list(self._opened):
            await self._replace(key, None)

    async def _replace(self, key: tuple[str, str], after: _Opened | None) -> None:
        before = self._opened.pop(key, None)
        if after:
            self._opened[key] = after
        if before:
            await before.metadata.close()
