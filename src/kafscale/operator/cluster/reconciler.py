"""A cluster brought to what its resource asks for, in order, and told about.

The order is etcd, bucket, brokers, Services, autoscaler, the rest, then one step of a rollout, and
the status. The laws: nothing is remembered between two times that could not be seen again, so the
operator may die anywhere; what is not ready stops what depends on it, and nothing else; and the
status is written only when it says something new.
"""

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.operator import OperatorMetrics
from kafscale.operator.cluster import secrets
from kafscale.operator.cluster import status as cluster_status
from kafscale.operator.cluster.backups import BackupKeeper
from kafscale.operator.cluster.bucket import BucketKeeper
from kafscale.operator.cluster.manifests import Manifests
from kafscale.operator.cluster.memory_check import memory_condition
from kafscale.operator.cluster.metadata import ClusterMetadata, MetadataRegistry
from kafscale.operator.cluster.rollout import Roller
from kafscale.operator.cluster.rollout_plan import Wait
from kafscale.operator.cluster.scale_to_zero.controller import Sleeper
from kafscale.operator.cluster.status import Found
from kafscale.operator.conditions import TRUE, bad, ok
from kafscale.operator.etcd.keeping import EtcdKeeper
from kafscale.operator.kube.api import Kube, Manifest
from kafscale.operator.kube.kinds import CLUSTERS
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import config_map, env, services
from kafscale.operator.manifests.brokers import pods as brokers_pods
from kafscale.operator.manifests.names import EtcdAccess
from kafscale.operator.spec.cluster import Cluster, read_cluster

log = get_logger(__name__)

ETCD_SECONDS: Final = 10.0
"""After which something is looked at again that others depend on and that is not ready."""
STEP_SECONDS: Final = 2.0
"""After which a rollout goes on."""


class ClusterReconciler:
    """Looks after clusters."""

    def __init__(
        self,
        kube: Kube,
        platform: names.Platform,
        *,
        etcds: EtcdKeeper,
        buckets: BucketKeeper,
        backups: BackupKeeper,
        registry: MetadataRegistry,
        roller: Roller,
        sleeper: Sleeper,
        metrics: OperatorMetrics,
        resync_seconds: float,
    ) -> None:
        self._kube = kube
        self._platform = platform
        self._etcds = etcds
        self._buckets = buckets
        self._backups = backups
        self._registry = registry
        self._roller = roller
        self._sleeper = sleeper
        self._metrics = metrics
        self._resync_seconds = resync_seconds
        self._manifests = Manifests(kube, platform)

    async def reconcile(self, body: Manifest) -> float:
        """Bring a cluster a step nearer to what it should be; seconds until the next look."""
        try:
            cluster = read_cluster(body)
        except msgspec.ValidationError as error:
            log.warning("spec not understood", cluster=body["metadata"]["name"], error=str(error))
            return self._resync_seconds
        found = Found(bootstrap_servers=services.bootstrap_servers(cluster, self._platform))
        seconds = await self._bring(cluster, body, found)
        await self._tell(cluster, body, found)
        return min(seconds, self._resync_seconds)

    async def let_go(self, body: Manifest) -> bool:
        """Forget a cluster; what belongs to it is deleted by Kubernetes, its records stay."""
        metadata = body["metadata"]
        self._etcds.forget(metadata["uid"])
        await self._registry.close(metadata["namespace"], metadata["name"])
        await self._backups.forget(metadata["namespace"], metadata["name"])
        self._buckets.forget(metadata["namespace"], metadata["name"])
        await self._sleeper.forget(metadata["namespace"], metadata["name"])
        self._metrics.forget(metadata["namespace"], metadata["name"])
        return True

    async def _bring(self, cluster: Cluster, body: Manifest, found: Found) -> float:
        etcd = await self._etcds.ensure(cluster)
        found.etcd = etcd.status()
        found.conditions += etcd.conditions
        bucket = await self._buckets.ensure(cluster)
        found.conditions += bucket.conditions
        metadata: ClusterMetadata | None = None
        if etcd.is_ready:
            assert etcd.settings is not None, "an etcd that is ready was asked"
            metadata = await self._look(cluster, etcd.settings, found)
        if not etcd.is_ready or not bucket.is_ready:
            await self._count(cluster, found)
            return STEP_SECONDS if etcd.is_busy else ETCD_SECONDS
        if problems := config_map.problems(cluster, self._platform, etcd.access):
            found.conditions.append(bad("ConfigValid", "Refused", "; ".join(problems)))
            await self._count(cluster, found)
            return self._resync_seconds
        found.conditions += [ok("ConfigValid", "Accepted"), memory_condition(cluster)]
        seconds = await self._roll(cluster, body, etcd.access, metadata, found)
        is_moving = found.step is not None or etcd.is_busy
        return STEP_SECONDS if is_moving else seconds

    async def _roll(
        self,
        cluster: Cluster,
        body: Manifest,
        access: EtcdAccess,
        metadata: ClusterMetadata | None,
        found: Found,
    ) -> float:
        """Apply everything that brokers are made of, and take one step towards it.

        Seconds until the next look, if nothing is being changed.
        """
        # Certificates of etcd are read at the start alone.
        started_with = [*env.secrets(cluster, access), access.tls_secret]
        watched = [name for name in started_with if name]
        checksum = await secrets.checksum(self._kube, cluster.namespace, watched)
        stateful_set = await self._manifests.apply(cluster, access, checksum)
        pods = await self._roller.pods(cluster)
        members = set(metadata.brokers) if metadata is not None else None
        wanted = None if cluster.spec.autoscaling.enabled else cluster.spec.brokers.replicas
        view = self._roller.view(stateful_set, pods, members, wanted)
        view, found.is_asleep, seconds = await self._sleeper.look(
            cluster, body, stateful_set, view, metadata
        )
        found.replicas = view.target
        found.broker_count = len(pods)
        found.ready_brokers = sum(pod.is_ready and pod.is_serving for pod in view.pods)
        if _is_observed(stateful_set):
            found.step = await self._roller.step(cluster, body, view)
        else:
            # Until then nobody knows which pods are up to date.
            found.step = Wait("the StatefulSet has just been changed")
        if found.step is None and found.ready_brokers < found.replicas:
            found.step = Wait("brokers are starting")
        return seconds

    async def _look(self, cluster: Cluster, settings: Etcd, found: Found) -> ClusterMetadata | None:
        """See what the cluster's metadata says; back it up, and keep the bucket's rules to it."""
        try:
            metadata = await self._registry.open(
                cluster.namespace, cluster.name, settings, cluster.object_namespace
            )
        except KafscaleError as error:
            found.conditions.append(bad("MetadataReadable", "NotOpened", str(error)))
            return None
        found.topic_count = len(metadata.topics)
        found.conditions.append(ok("MetadataReadable", "Open"))
        found.conditions += await self._buckets.keep_lifecycle(
            cluster, list(metadata.topics.values())
        )
        backup = await self._backups.keep(cluster, settings)
        found.snapshot = backup.status
        found.conditions += backup.conditions
        return metadata

    async def _count(self, cluster: Cluster, found: Found) -> None:
        """Tell of brokers that are there already, while none can be changed."""
        pods = await self._roller.pods(cluster)
        if pods:
            found.broker_count = found.replicas = len(pods)
            found.ready_brokers = sum(map(brokers_pods.is_ready, pods))

    # --- telling ------------------------------------------------------------------------------

    async def _tell(self, cluster: Cluster, body: Manifest, found: Found) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = cluster_status.status(cluster, found, now)
        self._measure(cluster, found)
        if not _says_the_same(status, cluster.status):
            await self._kube.apply_status(_with_status(body, status))
        for condition in cluster_status.changed(
            cluster.status.get("conditions") or [], status["conditions"]
        ):
            log.info(
                "condition changed",
                cluster=cluster.name,
                namespace=cluster.namespace,
                type=condition.type,
                status=condition.status,
                reason=condition.reason,
                message=condition.message,
            )
            is_good = condition.status == TRUE
            word = f"{condition.type}{'' if is_good else 'Lost'}"
            told = condition.message or condition.reason
            await self._kube.tell(body, word, told, warning=not is_good)

    def _measure(self, cluster: Cluster, found: Found) -> None:
        figures = self._metrics.cluster(cluster.namespace, cluster.name)
        figures.brokers_ready = found.ready_brokers or 0
        figures.brokers_desired = found.replicas
        figures.topics = found.topic_count or 0
        if found.etcd is not None and found.etcd.managed:
            figures.etcd_members_ready = found.etcd.members_ready
            figures.etcd_members_desired = cluster.spec.etcd.managed.replicas
            figures.etcd_database_bytes = found.etcd.database_bytes


def _is_observed(stateful_set: Manifest) -> bool:
    """Whether what Kubernetes says of a StatefulSet is about what it is now."""
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


def _says_the_same(status: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether nothing is new; the age of a snapshot grows by itself, and is not worth a write."""

    def without_age(one: dict[str, Any]) -> dict[str, Any]:
        snapshot = {k: v for k, v in (one.get("snapshot") or {}).items() if k != "ageSeconds"}
        return {**one, "snapshot": snapshot}

    return without_age(status) == without_age(before)
