"""The metadata of clusters as the operator sees it: opened once per cluster, kept current.

Invariants: a cluster's metadata is read without waiting, and kept current by watches. Changed
settings open it again; the former connection is closed once the new one is ready, so that a
certificate changes without a gap. A caller that still uses a closed one gets
`StoreUnavailableError`, and retries with what `get` returns then. `etcd.connection` builds the
settings.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.cluster.restore_marker import find_pending_restore
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.store.etcd import EtcdStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

CHANGE_MS_MAX: Final = 15_000
"""The timeout of a change of a topic; it is retried later."""


class ClusterMetadata:
    """Topics, brokers and assignments of one cluster."""

    def __init__(self, store: MetadataStore, object_namespace: str) -> None:
        """`object_namespace` is the prefix of the cluster's objects, recorded in topics."""
        self._store = store
        self.topic_store = TopicStore(store, namespace=object_namespace, timeout_ms=CHANGE_MS_MAX)
        """Reads and changes topics."""
        self.view = ClusterCache(store)
        """Live brokers, the controller and assignments."""
        self._cluster_id = ""
        self._close_listeners: list[Callable[[], None]] = []

    @property
    def is_connected(self) -> bool:
        """Whether watches are connected; if not, everything may be out of date."""
        return self.topic_store.connected and self.view.connected

    async def is_restore_settled(self) -> bool:
        """False while brokers still reconcile restored metadata with the bucket."""
        return await find_pending_restore(self._store) is None

    async def cluster_id(self) -> str:
        """The id that brokers generated for the cluster; empty before the first one registered."""
        if not self._cluster_id and (entry := await self._store.get(keys.CLUSTER_ID)):
            self._cluster_id = entry.value.decode()
        return self._cluster_id

    def on_close(self, listener: Callable[[], None]) -> None:
        """Call `listener` when this is closed."""
        self._close_listeners.append(listener)

    async def start(self) -> None:
        """Read everything, then follow the store until `close`."""
        await self.topic_store.start()
        await self.view.start()

    async def close(self) -> None:
        while self._close_listeners:
            self._close_listeners.pop()()
        await self.view.close()
        await self.topic_store.close()
        await self._store.close()


class _Opened(NamedTuple):
    settings: tuple[Etcd, str]
    metadata: ClusterMetadata


class MetadataRegistry:
    """The metadata of all clusters that the operator has opened, by namespace and name."""

    def __init__(self, open_store: Callable[[Etcd], MetadataStore] = EtcdStore) -> None:
        self._open_store = open_store
        self._opened: dict[tuple[str, str], _Opened] = {}

    def get(self, namespace: str, name: str) -> ClusterMetadata | None:
        """The metadata of a cluster; None if it is not open."""
        opened = self._opened.get((namespace, name))
        return opened.metadata if opened else None

    async def find(self, cluster_id: str) -> ClusterMetadata | None:
        for opened in list(self._opened.values()):
            with suppress(StoreUnavailableError):
                if await opened.metadata.cluster_id() == cluster_id:
                    return opened.metadata
        return None

    def name_of(self, metadata: ClusterMetadata) -> tuple[str, str]:
        """The namespace and name of the cluster; raises `StoreUnavailableError` if it is closed."""
        for key, opened in self._opened.items():
            if opened.metadata is metadata:
                return key
        raise StoreUnavailableError("the metadata of the cluster was closed")

    def only(self) -> ClusterMetadata | None:
        """The metadata of the only open cluster; None if there are several, or none."""
        opened = list(self._opened.values())
        return opened[0].metadata if len(opened) == 1 else None

    async def open(
        self, namespace: str, name: str, settings: Etcd, object_namespace: str
    ) -> ClusterMetadata:
        """The metadata of a cluster, fully read when this returns.

        Raises `ConfigError` for unusable certificate files, and `StoreUnavailableError`; what was
        open before then stays.
        """
        desired = settings, object_namespace
        opened = self._opened.get((namespace, name))
        if opened and opened.settings == desired:
            return opened.metadata
        metadata = ClusterMetadata(self._open_store(settings), object_namespace)
        try:
            await metadata.start()
        except BaseException:
            await metadata.close()
            raise
        await self._replace((namespace, name), _Opened(desired, metadata))
        logger.info("metadata opened", namespace=namespace, cluster=name, etcd=settings.endpoints)
        return metadata

    async def close(self, namespace: str, name: str) -> None:
        """Close the metadata of a deleted cluster."""
        await self._replace((namespace, name), None)

    async def close_all(self) -> None:
        for key in list(self._opened):
            await self._replace(key, None)

    async def _replace(self, key: tuple[str, str], replacement: _Opened | None) -> None:
        previous = self._opened.pop(key, None)
        if replacement:
            self._opened[key] = replacement
        if previous:
            await previous.metadata.close()
