"""What a node sees of the cluster: a mirror of each kind that pods are made from."""

import asyncio
from collections.abc import Mapping

from kafscale.operator.kube.kinds import (
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
from services.kubernetes.kubelet.mirror import Mirror

VOLUMES = Kind("v1", "PersistentVolume", "persistentvolumes", is_namespaced=False)


class View:
    """Everything that the API server tells."""

    def __init__(self, api: Api) -> None:
        self.nodes = Mirror(api, NODES)
        self.pods = Mirror(api, PODS)
        self.services = Mirror(api, SERVICES)
        self.endpoint_slices = Mirror(api, ENDPOINT_SLICES)
        self.config_maps = Mirror(api, CONFIG_MAPS)
        self.secrets = Mirror(api, SECRETS)
        self.claims = Mirror(api, VOLUME_CLAIMS)
        self.volumes = Mirror(api, VOLUMES)

    @property
    def mirrors(self) -> tuple[Mirror, ...]:
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

    async def filled(self) -> None:
        """Return when all there is has been seen once."""
        await asyncio.gather(*(mirror.filled() for mirror in self.mirrors))

    def store(self, namespace: str) -> "NamespaceStore":
        return NamespaceStore(self, namespace)


class NamespaceStore:
    """The ConfigMaps and Secrets of a namespace: a `Store`."""

    def __init__(self, view: View, namespace: str) -> None:
        self._view = view
        self._namespace = namespace

    def config_map(self, name: str) -> Mapping[str, bytes] | None:
        return self._contents(self._view.config_maps, name)

    def secret(self, name: str) -> Mapping[str, bytes] | None:
        return self._contents(self._view.secrets, name)

    def _contents(self, mirror: Mirror, name: str) -> Mapping[str, bytes] | None:
        found = mirror.get(self._namespace, name)
        return None if found is None else contents(found)
