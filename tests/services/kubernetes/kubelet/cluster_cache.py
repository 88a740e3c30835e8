"""The watch caches of all kinds that pods are built from."""

import asyncio
from collections.abc import Mapping

from kafscale.operator.kube.api import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    VOLUME_CLAIMS,
    Kind,
)
from services.kubernetes.kubelet.api import Api
from services.kubernetes.kubelet.environment import contents
from services.kubernetes.kubelet.watch_cache import WatchCache

VOLUMES = Kind("v1", "PersistentVolume", "persistentvolumes", is_namespaced=False)


class ClusterCache:
    """All objects that the kubelet needs."""

    def __init__(self, api: Api) -> None:
        self.nodes = WatchCache(api, NODES)
        self.pods = WatchCache(api, PODS)
        self.services = WatchCache(api, SERVICES)
        self.endpoint_slices = WatchCache(api, ENDPOINT_SLICES)
        self.config_maps = WatchCache(api, CONFIG_MAPS)
        self.secrets = WatchCache(api, SECRETS)
        self.claims = WatchCache(api, VOLUME_CLAIMS)
        self.volumes = WatchCache(api, VOLUMES)

    @property
    def caches(self) -> tuple[WatchCache, ...]:
        return (
            self.nodes,
            self.pods,
            self.services,
            self.endpoint_slices,
            self.config_maps,
            self.secrets,
            self.claims,
            self.volumes,
        )

    async def synced(self) -> None:
        """Return when all objects have been listed once."""
        await asyncio.gather(*(cache.synced() for cache in self.caches))

    def store(self, namespace: str) -> "NamespaceStore":
        return NamespaceStore(self, namespace)


class NamespaceStore:
    """The ConfigMaps and Secrets of a namespace: a `Store`."""

    def __init__(self, view: ClusterCache, namespace: str) -> None:
        self._view = view
        self._namespace = namespace

    def config_map(self, name: str) -> Mapping[str, bytes] | None:
        return self._contents(self._view.config_maps, name)

    def secret(self, name: str) -> Mapping[str, bytes] | None:
        return self._contents(self._view.secrets, name)

    def _contents(self, cache: WatchCache, name: str) -> Mapping[str, bytes] | None:
        manifest = cache.get(self._namespace, name)
        return None if manifest is None else contents(manifest)
