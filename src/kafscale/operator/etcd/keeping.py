"""Looks after the etcds of clusters: those that are given are watched, others are run.

The law: whatever is wrong with an etcd is a state with conditions that say so; only trouble with
Kubernetes itself is an error. An etcd that was run, and is not wanted any more because another was
named, goes on running: it has the only copy of what it knows.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from kafscale.errors import KafscaleError, KubeError
from kafscale.metadata.store.etcd.maintenance import Maintenance
from kafscale.operator.cluster.etcd_connection import etcd_settings
from kafscale.operator.conditions import bad
from kafscale.operator.etcd import endpoint_resolution as accesses
from kafscale.operator.etcd import health, ownership
from kafscale.operator.etcd.membership import LOST_AFTER_MS
from kafscale.operator.etcd.observe import LOOK_MS_MAX, Connect, ask
from kafscale.operator.etcd.reconciler import ManagedEtcd, Surroundings
from kafscale.operator.etcd.state import EtcdState
from kafscale.operator.etcd.unresponsive import Silences
from kafscale.operator.kube.api import Kube
from kafscale.operator.kube.kinds import CLUSTERS, PODS
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.spec.cluster import Cluster

_NOWHERE: Final = EtcdAccess(endpoints=())


class EtcdKeeper:
    """Looks after the etcds of all clusters."""

    def __init__(
        self,
        kube: Kube,
        platform: Platform,
        *,
        clock: Callable[[], int],
        directory: Path,
        newest_snapshot: Callable[[Cluster], Awaitable[str]],
        settings_endpoints: Sequence[str] = (),
        namespaces: Sequence[str] = (),
        connect: Connect = Maintenance,
        lost_after_ms: int = LOST_AFTER_MS,
        look_ms_max: int = LOOK_MS_MAX,
    ) -> None:
        """`clock` is in milliseconds; `directory` is a private one, for certificates.

        `newest_snapshot` is asked for a key where a cluster is to begin with the latest snapshot;
        `namespaces` are those that clusters may be in, none for all.
        """
        self._around = Surroundings(
            kube, platform, connect, clock, newest_snapshot, directory, lost_after_ms, look_ms_max
        )
        self._settings_endpoints = settings_endpoints
        self._namespaces = namespaces or ("",)
        self._silences = Silences()

    async def ensure(self, cluster: Cluster) -> EtcdState:
        """See that there is an etcd, and how it is; bring one of ours a step nearer to that."""
        resolve = await self._resolver(cluster)
        access = resolve(cluster)
        if access is None:
            why = "etcd.useKubeEtcd is set, and there is no such pod; name etcd.endpoints instead"
            return _unready(_NOWHERE, "NotFound", why)
        try:
            if access.is_managed:
                return await ManagedEtcd(self._around, cluster, access).ensure(self._silences)
            return await self._look(cluster, access, resolve)
        except KubeError:
            raise
        except KafscaleError as error:
            return _unready(access, "Unusable", str(error))

    def forget(self, uid: str) -> None:
        """Let go of a cluster that is no more."""
        self._silences.forget(f"{uid}/")

    async def _resolver(self, cluster: Cluster) -> ownership.Resolve:
        """Which etcd this cluster uses, and any other as far as they might have one in common."""
        found: Sequence[str] = ()
        if cluster.spec.etcd.use_kube_etcd and not cluster.spec.etcd.endpoints:
            kube = self._around.kube
            pods = await kube.list(PODS, accesses.KUBE_NAMESPACE, accesses.KUBE_LABELS)
            found = accesses.kube_etcd_endpoints(pods)
        return partial(
            accesses.resolve,
            platform=self._around.platform,
            settings_endpoints=self._settings_endpoints,
            kube_etcd_endpoints=found,
        )

    async def _look(
        self, cluster: Cluster, access: EtcdAccess, resolve: ownership.Resolve
    ) -> EtcdState:
        """How an etcd is that others look after."""
        around = self._around
        clusters = [
            body for each in self._namespaces for body in await around.kube.list(CLUSTERS, each)
        ]
        if holder := ownership.holder(cluster, access.endpoints, clusters, resolve):
            why = f"it is the etcd of {holder}, and nobody else's: name another in etcd.endpoints"
            return _unready(access, "TakenByAnother", why)
        settings = await etcd_settings(around.kube, cluster.namespace, access, around.directory)
        answers = await ask(access.endpoints, settings, around.connect, around.look_ms_max)
        able = [each for each in answers.statuses.values() if each.leader_id]
        why = "; ".join(answers.failures.values()) or "no member knows a leader"
        return EtcdState(
            access=access,
            is_ready=bool(able),
            conditions=health.given_conditions(len(able), access.endpoints, why),
            settings=settings,
            members=len(answers.listed) if answers.listed is not None else None,
            members_ready=len(able),
            database_bytes=max((each.database_bytes for each in able), default=None),
        )


def _unready(access: EtcdAccess, reason: str, message: str) -> EtcdState:
    return EtcdState(access=access, is_ready=False, conditions=[bad(health.READY, reason, message)])
