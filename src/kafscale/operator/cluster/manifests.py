"""Applies the objects of a cluster's brokers in order, and deletes those no longer desired."""

from collections.abc import Iterator

from kafscale.operator.kube.api import (
    AUTOSCALERS,
    NETWORK_POLICIES,
    SERVICE_MONITORS,
    STATEFUL_SETS,
    Kind,
    Kube,
    Manifest,
)
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import (
    config_map,
    network_policy,
    scaling,
    service_account,
    services,
)
from kafscale.operator.manifests.brokers import stateful_set as brokers_stateful_set
from kafscale.operator.manifests.names import EtcdAccess
from kafscale.operator.spec.cluster import Cluster


class ManifestApplier:
    """Applies the manifests of clusters."""

    def __init__(self, kube: Kube, platform: names.Platform) -> None:
        self._kube = kube
        self._platform = platform

    async def apply(self, cluster: Cluster, etcd: EtcdAccess, secrets_checksum: str) -> Manifest:
        """Apply everything; return the StatefulSet of the brokers as it is then."""
        for manifest in self._prerequisites(cluster, etcd):
            await self._kube.apply(manifest)
        stateful_set = await self._apply_brokers(cluster, etcd, secrets_checksum)
        for manifest in (services.headless(cluster), services.client(cluster)):
            await self._kube.apply(manifest)
        await self._apply_or_delete(cluster, AUTOSCALERS, scaling.autoscaler(cluster))
        await self._kube.apply(scaling.pod_disruption_budget(cluster))
        policy = network_policy.policy(cluster, self._platform)
        await self._apply_or_delete(cluster, NETWORK_POLICIES, policy)
        if await self._kube.supports(SERVICE_MONITORS):
            desired = services.service_monitor(cluster)
            await self._apply_or_delete(cluster, SERVICE_MONITORS, desired)
        return stateful_set

    def _prerequisites(self, cluster: Cluster, etcd: EtcdAccess) -> Iterator[Manifest]:
        """The objects that pods need to start."""
        yield service_account.service_account(cluster)
        yield service_account.role(cluster)
        yield service_account.binding(cluster)
        yield config_map.config_map(cluster, self._platform, etcd)

    async def _apply_brokers(
        self, cluster: Cluster, etcd: EtcdAccess, secrets_checksum: str
    ) -> Manifest:
        manifest = brokers_stateful_set.stateful_set(
            cluster, self._platform, etcd, secrets_checksum=secrets_checksum
        )
        # Replicas are never applied, or the operator would own the field that an autoscaler sets.
        # Only a new StatefulSet gets an initial number.
        if not await self._kube.get(STATEFUL_SETS, cluster.namespace, names.broker(cluster)):
            first = {**manifest["spec"], "replicas": cluster.spec.replicas_min}
            await self._kube.create({**manifest, "spec": first})
        return await self._kube.apply(manifest)

    async def _apply_or_delete(
        self, cluster: Cluster, kind: Kind, manifest: Manifest | None
    ) -> None:
        """Apply a manifest, or delete the object (named like the brokers) if there is none."""
        if manifest is not None:
            await self._kube.apply(manifest)
        elif await self._kube.get(kind, cluster.namespace, names.broker(cluster)) is not None:
            await self._kube.delete(kind, cluster.namespace, names.broker(cluster))
