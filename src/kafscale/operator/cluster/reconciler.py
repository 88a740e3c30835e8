"""Reconciles clusters, and reports their status.

The order is etcd, bucket, certificates, brokers, Services, autoscaler, the other objects, then one
step of a rollout, and the status. Invariants: nothing is remembered between two runs that could not
be observed again, so the operator may stop at any moment. A part that is not ready stops what
depends on it, and nothing else. The status is written only when it changes.
"""

from typing import Any, Final

import msgspec

from kafscale.aio.clock import clock
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.operator import secrets
from kafscale.operator.cluster import status as cluster_status
from kafscale.operator.cluster.backups import BackupReconciler
from kafscale.operator.cluster.bucket import BucketReconciler
from kafscale.operator.cluster.listener_certificates import ListenerCertificates
from kafscale.operator.cluster.manifests import ManifestApplier
from kafscale.operator.cluster.metadata import ClusterMetadata, MetadataRegistry
from kafscale.operator.cluster.rollout import RolloutExecutor
from kafscale.operator.cluster.rollout_plan import Wait
from kafscale.operator.cluster.scale_to_zero.controller import ScaleToZeroController
from kafscale.operator.cluster.status import ObservedCluster, memory_condition
from kafscale.operator.control_certificates import ControlCertificates
from kafscale.operator.etcd.reconciler import EtcdReconciler
from kafscale.operator.kube.api import CLUSTERS, Kube, Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests import pods as broker_pods
from kafscale.operator.manifests.brokers import config_map, services
from kafscale.operator.manifests.names import EtcdAccess
from kafscale.operator.spec.cluster import Cluster, read_cluster
from kafscale.operator.spec.status import TRUE, bad, ok
from kafscale.text.formatting import format_time

logger = get_logger(__name__)

RECHECK_SECONDS: Final = 10.0
"""The delay before a dependency that is not ready is checked again."""
STEP_SECONDS: Final = 2.0
"""The delay between two steps of a rollout."""


class ClusterReconciler:
    """Reconciles clusters."""

    def __init__(
        self,
        kube: Kube,
        platform: names.Platform,
        *,
        control_certificates: ControlCertificates,
        listener_certificates: ListenerCertificates,
        etcds: EtcdReconciler,
        buckets: BucketReconciler,
        backups: BackupReconciler,
        registry: MetadataRegistry,
        rollout: RolloutExecutor,
        scale_to_zero: ScaleToZeroController,
        metrics: OperatorMetrics,
        resync_seconds: float,
    ) -> None:
        self._kube = kube
        self._platform = platform
        self._control_certificates = control_certificates
        self._listener_certificates = listener_certificates
        self._etcds = etcds
        self._buckets = buckets
        self._backups = backups
        self._registry = registry
        self._rollout = rollout
        self._scale_to_zero = scale_to_zero
        self._metrics = metrics
        self._resync_seconds = resync_seconds
        self._manifests = ManifestApplier(kube, platform)

    async def reconcile(self, body: Manifest) -> float:
        """Take one step towards the desired state; return the seconds until the next one."""
        try:
            cluster = read_cluster(body)
        except msgspec.ValidationError as error:
            logger.warning("invalid spec", cluster=body["metadata"]["name"], error=str(error))
            return self._resync_seconds
        observed = ObservedCluster(
            bootstrap_servers=services.bootstrap_servers(cluster, self._platform)
        )
        seconds = await self._reconcile(cluster, body, observed)
        await self._report(cluster, body, observed)
        return min(seconds, self._resync_seconds)

    async def finalize(self, body: Manifest) -> bool:
        """Drop the state of a cluster. Kubernetes deletes its objects; its records stay."""
        metadata = body["metadata"]
        self._etcds.forget(metadata["uid"])
        await self._registry.close(metadata["namespace"], metadata["name"])
        await self._backups.forget(metadata["namespace"], metadata["name"])
        self._buckets.forget(metadata["namespace"], metadata["name"])
        await self._scale_to_zero.forget(metadata["namespace"], metadata["name"])
        self._metrics.forget(metadata["namespace"], metadata["name"])
        return True

    async def _reconcile(
        self, cluster: Cluster, body: Manifest, observed: ObservedCluster
    ) -> float:
        etcd = await self._etcds.reconcile(cluster)
        observed.etcd = etcd.status()
        observed.conditions += etcd.conditions
        bucket = await self._buckets.reconcile(cluster)
        observed.conditions += bucket.conditions
        metadata: ClusterMetadata | None = None
        if etcd.is_ready:
            assert etcd.settings is not None, "an etcd that is ready has settings"
            metadata = await self._read_metadata(cluster, etcd.settings, observed)
        if not etcd.is_ready or not bucket.is_ready:
            await self._count_brokers(cluster, observed)
            return STEP_SECONDS if etcd.is_busy else RECHECK_SECONDS
        if problems := config_map.problems(cluster, self._platform, etcd.access):
            observed.conditions.append(bad("ConfigValid", "Invalid", "; ".join(problems)))
            await self._count_brokers(cluster, observed)
            return self._resync_seconds
        observed.conditions += [ok("ConfigValid", "Accepted"), memory_condition(cluster)]
        seconds = await self._reconcile_brokers(cluster, body, etcd.access, metadata, observed)
        is_changing = observed.step is not None or etcd.is_busy
        return STEP_SECONDS if is_changing else seconds

    async def _reconcile_brokers(
        self,
        cluster: Cluster,
        body: Manifest,
        access: EtcdAccess,
        metadata: ClusterMetadata | None,
        observed: ObservedCluster,
    ) -> float:
        """Apply the objects of the brokers, and take one step of a rollout.

        Returns the seconds until the next check, if no change is in progress.
        """
        await self._control_certificates.reconcile(cluster)
        await self._listener_certificates.reconcile(cluster)
        # Brokers read certificates of etcd only at the start.
        names_used = [*config_map.env_secrets(cluster, access), access.tls_secret]
        secret_names = [name for name in names_used if name]
        checksum = await secrets.checksum(self._kube, cluster.namespace, secret_names)
        stateful_set = await self._manifests.apply(cluster, access, checksum)
        pods = await self._rollout.pods(cluster)
        members = set(metadata.view.brokers) if metadata is not None else None
        desired = None if cluster.spec.autoscaling.enabled else cluster.spec.brokers.replicas
        state = self._rollout.observe(stateful_set, pods, members, desired)
        state, observed.is_scaled_to_zero, seconds = await self._scale_to_zero.reconcile(
            cluster, body, stateful_set, state, metadata
        )
        observed.replicas = state.target
        observed.broker_count = len(pods)
        observed.ready_brokers = sum(pod.is_ready and pod.is_serving for pod in state.pods)
        if _is_observed(stateful_set):
            observed.step = await self._rollout.step(cluster, body, state)
        else:
            # Before that it is unknown which pods are up to date.
            observed.step = Wait("the StatefulSet was just changed")
        if observed.step is None and observed.ready_brokers < observed.replicas:
            observed.step = Wait("brokers are starting")
        return seconds

    async def _read_metadata(
        self, cluster: Cluster, settings: Etcd, observed: ObservedCluster
    ) -> ClusterMetadata | None:
        """Open the cluster's metadata, back it up, and update the bucket's lifecycle rules."""
        try:
            metadata = await self._registry.open(
                cluster.namespace, cluster.name, settings, cluster.object_namespace
            )
        except KafscaleError as error:
            observed.conditions.append(bad("MetadataReadable", "NotOpened", str(error)))
            return None
        observed.topic_count = len(metadata.topic_store.topics)
        observed.conditions.append(ok("MetadataReadable", "Open"))
        observed.conditions += await self._buckets.reconcile_lifecycle(
            cluster, list(metadata.topic_store.topics.values())
        )
        backup = await self._backups.reconcile(cluster, settings)
        observed.snapshot = backup.status
        observed.conditions += backup.conditions
        return metadata

    async def _count_brokers(self, cluster: Cluster, observed: ObservedCluster) -> None:
        """Report the existing brokers while they cannot be changed."""
        pods = await self._rollout.pods(cluster)
        if pods:
            observed.broker_count = observed.replicas = len(pods)
            observed.ready_brokers = sum(map(broker_pods.is_ready, pods))

    # --- reporting ----------------------------------------------------------------------------

    async def _report(self, cluster: Cluster, body: Manifest, observed: ObservedCluster) -> None:
        now = format_time(clock(), "seconds")
        status = cluster_status.status(cluster, observed, now)
        self._update_metrics(cluster, observed)
        if not _is_unchanged(status, cluster.status):
            await self._kube.apply_status(_with_status(body, status))
        for condition in cluster_status.changed(
            cluster.status.get("conditions") or [], status["conditions"]
        ):
            logger.info(
                "condition changed",
                cluster=cluster.name,
                namespace=cluster.namespace,
                type=condition.type,
                status=condition.status,
                reason=condition.reason,
                message=condition.message,
            )
            is_true = condition.status == TRUE
            reason = f"{condition.type}{'' if is_true else 'Lost'}"
            message = condition.message or condition.reason
            await self._kube.record_event(body, reason, message, warning=not is_true)

    def _update_metrics(self, cluster: Cluster, observed: ObservedCluster) -> None:
        metrics = self._metrics.cluster(cluster.namespace, cluster.name)
        metrics.brokers_ready = observed.ready_brokers or 0
        metrics.brokers_desired = observed.replicas
        metrics.topics = observed.topic_count or 0
        if observed.etcd is not None and observed.etcd.managed:
            metrics.etcd_members_ready = observed.etcd.members_ready
            metrics.etcd_members_desired = cluster.spec.etcd.managed.replicas
            metrics.etcd_database_bytes = observed.etcd.database_bytes


def _is_observed(stateful_set: Manifest) -> bool:
    """Whether the status of a StatefulSet is about its current generation."""
    observed = stateful_set.get("status", {}).get("observedGeneration", 0)
    return bool(observed >= stateful_set["metadata"]["generation"])


def _with_status(body: Manifest, status: dict[str, Any]) -> Manifest:
    metadata = body["metadata"]
    return {
        "apiVersion": CLUSTERS.api_version,
        "kind": CLUSTERS.kind,
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "status": status,
    }


def _is_unchanged(status: dict[str, Any], previous: dict[str, Any]) -> bool:
    """Whether nothing changed but the age of the snapshot, which is not worth a write."""

    def without_age(one: dict[str, Any]) -> dict[str, Any]:
        snapshot = {k: v for k, v in (one.get("snapshot") or {}).items() if k != "ageSeconds"}
        return {**one, "snapshot": snapshot}

    return without_age(status) == without_age(previous)
