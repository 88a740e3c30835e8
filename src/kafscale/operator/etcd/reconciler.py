"""Reconciles the etcd of each cluster: monitors an external one, runs a managed one.

Invariants:

* A problem with an etcd becomes conditions of its state; only a failure of Kubernetes is an error.
* A managed etcd: certificates come first, then the bootstrap config, then pods. Everything is
  decided from what is observed now, except how long members have been unresponsive, which a new
  operator counts again from zero. One action is executed at a time.
* A cluster forms only if there is neither a StatefulSet nor a bootstrap config. In doubt it has
  formed before, and members without data may not start.
* A managed etcd that is no longer used, because the resource names another one, keeps running: it
  has the only copy of its data.
"""

import datetime as dt
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from kafscale.admin.etcd.backups.snapshot_format import LATEST
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError, KubeError, OperatingError
from kafscale.metadata.store.etcd.maintenance import Maintenance
from kafscale.observability.logging import get_logger
from kafscale.operator.etcd import access as etcd_access
from kafscale.operator.etcd import certificates, health
from kafscale.operator.etcd.access import leftovers
from kafscale.operator.etcd.connection import etcd_settings
from kafscale.operator.etcd.executor import Executor, apply, grow_volumes
from kafscale.operator.etcd.health import EtcdState
from kafscale.operator.etcd.membership import LOST_AFTER_MS
from kafscale.operator.etcd.observe import (
    QUERY_MS_MAX,
    Connect,
    MemberResponses,
    Objects,
    UnresponsiveMembers,
    build_view,
    find_objects,
    query_members,
)
from kafscale.operator.etcd.plan import next_bootstrap, plan, replicas
from kafscale.operator.etcd.view import EtcdView
from kafscale.operator.kube.api import CLUSTERS, PODS, SERVICES, Kind, Kube, Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import bootstrap_config, stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig, BootstrapMode
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.spec.cluster import Cluster
from kafscale.operator.spec.status import bad
from kafscale.operator.tenants import NotAllowedError, TenantRules

logger = get_logger(__name__)

_NO_ACCESS: Final = EtcdAccess(endpoints=())


class EtcdContext(NamedTuple):
    """The dependencies of etcd reconcilers."""

    kube: Kube
    platform: Platform
    connect: Connect
    clock: Callable[[], int]
    """In milliseconds."""
    newest_snapshot: Callable[[Cluster], Awaitable[str]]
    """The key of a cluster's newest snapshot; raises if there is none."""
    directory: Path
    """A private directory for certificates."""
    lost_after_ms: int
    query_ms_max: int


class ManagedEtcdReconciler:
    """Reconciles the managed etcd of one cluster."""

    def __init__(self, context: EtcdContext, cluster: Cluster, access: EtcdAccess) -> None:
        self._context = context
        self._cluster = cluster
        self._access = access

    async def reconcile(self, unresponsive: UnresponsiveMembers) -> EtcdState:
        """Take one step towards the desired state; return the observed state."""
        context, cluster = self._context, self._cluster
        objects = await find_objects(context.kube, cluster)
        if former_objects := leftovers(objects, cluster.uid):
            raise OperatingError(
                "objects of a deleted cluster with the same name still exist:"
                f" {', '.join(former_objects)}"
            )
        trust_checksum = await self._issue_certificates(objects)
        settings = await etcd_settings(
            context.kube, cluster.namespace, self._access, context.directory / cluster.uid
        )
        responses = await query_members(
            self._endpoints(objects), settings, context.connect, context.query_ms_max
        )
        view = self._observe(
            objects, responses, await self._read_bootstrap(objects), trust_checksum, unresponsive
        )
        member_list = stateful_set.initial_cluster(
            cluster, context.platform, (each.index for each in view.listed_members)
        )
        await apply(
            context.kube,
            cluster,
            context.platform,
            objects,
            bootstrap=next_bootstrap(view, member_list),
            replicas=replicas(view, _replicas(objects)),
            trust_checksum=trust_checksum,
        )
        await grow_volumes(context.kube, cluster, objects)
        executor = Executor(
            context.kube, cluster, context.platform, settings=settings, connect=context.connect
        )
        return self._state(view, settings, is_busy=await self._execute_plan(executor, view))

    async def _issue_certificates(self, objects: Objects) -> str:
        """Write certificates that are missing or due; return the checksum of the trusted CAs."""
        context, cluster = self._context, self._cluster
        now = dt.datetime.fromtimestamp(context.clock() / 1000, dt.UTC)
        secrets = dict(objects.secrets)
        for secret in certificates.secrets_to_write(cluster, context.platform, secrets, now):
            name = secret["metadata"]["name"]
            secrets[name] = await context.kube.apply(secret)
            logger.info("certificate issued", cluster=cluster.name, secret=name)
        return certificates.trust_checksum(secrets[names.etcd_server_tls(cluster)])

    async def _execute_plan(self, executor: Executor, view: EtcdView) -> bool:
        action = plan(view, self._context.lost_after_ms)
        if action is None:
            return view.bootstrap.mode is not BootstrapMode.FORMED
        try:
            await executor.execute(action, view)
        except KafscaleError as error:
            # The next reconcile plans again.
            logger.warning(
                "etcd action failed",
                cluster=self._cluster.name,
                action=repr(action),
                reason=str(error),
            )
        return True

    async def _read_bootstrap(self, objects: Objects) -> BootstrapConfig:
        """The current bootstrap config, or the first one of a new cluster."""
        current = bootstrap_config.read(objects.bootstrap)
        if current:
            return current
        if objects.stateful_set:
            return BootstrapConfig(BootstrapMode.FORMED)
        snapshot = self._cluster.spec.etcd.restore_from
        if snapshot == LATEST:
            snapshot = await self._context.newest_snapshot(self._cluster)
        members = stateful_set.initial_cluster(
            self._cluster, self._context.platform, range(self._cluster.spec.etcd.managed.replicas)
        )
        return BootstrapConfig(BootstrapMode.FORMING, members, snapshot)

    def _endpoints(self, objects: Objects) -> list[str]:
        """The endpoints of members that have a pod."""
        return [
            stateful_set.client_url(self._cluster, self._context.platform, index)
            for index in range(stateful_set.COUNT_MAX)
            if stateful_set.name(self._cluster, index) in objects.pods
        ]

    def _observe(
        self,
        objects: Objects,
        responses: MemberResponses,
        current: BootstrapConfig,
        trust_checksum: str,
        unresponsive: UnresponsiveMembers,
    ) -> EtcdView:
        cluster, now_ms = self._cluster, self._context.clock()
        observed = build_view(
            cluster,
            self._context.platform,
            objects,
            responses,
            bootstrap=current,
            trust_checksum=trust_checksum,
        )
        members = [
            replace(
                each,
                unresponsive_ms=unresponsive.duration_ms(
                    f"{cluster.uid}/{each.index}", now_ms, responds=each.status is not None
                ),
            )
            for each in observed.members
        ]
        return replace(observed, members=tuple(members))

    def _state(self, view: EtcdView, settings: Etcd, *, is_busy: bool) -> EtcdState:
        sizes = [each.status.database_bytes for each in view.members if each.status]
        return EtcdState(
            access=self._access,
            is_ready=view.has_quorum,
            conditions=health.conditions(view),
            settings=settings,
            members=len(view.listed_members) if view.has_member_list else None,
            members_ready=len(view.healthy),
            database_bytes=max(sizes, default=None),
            is_busy=is_busy,
        )


def _replicas(objects: Objects) -> int:
    """The replicas of the StatefulSet."""
    return int(objects.stateful_set["spec"].get("replicas", 1)) if objects.stateful_set else 0


class EtcdReconciler:
    """Reconciles the etcds of all clusters."""

    def __init__(
        self,
        kube: Kube,
        platform: Platform,
        *,
        clock: Callable[[], int],
        directory: Path,
        newest_snapshot: Callable[[Cluster], Awaitable[str]],
        rules: TenantRules,
        settings_endpoints: Sequence[str] = (),
        namespaces: Sequence[str] = (),
        connect: Connect = Maintenance,
        lost_after_ms: int = LOST_AFTER_MS,
        query_ms_max: int = QUERY_MS_MAX,
    ) -> None:
        """`clock` is in milliseconds; `directory` is a private one, for certificates.

        `newest_snapshot` resolves `restoreFrom: latest` to a key; `namespaces` are those of
        clusters, empty for all.
        """
        self._context = EtcdContext(
            kube, platform, connect, clock, newest_snapshot, directory, lost_after_ms, query_ms_max
        )
        self._rules = rules
        self._settings_endpoints = settings_endpoints
        self._namespaces = namespaces or ("",)
        self._unresponsive = UnresponsiveMembers()

    async def reconcile(self, cluster: Cluster) -> EtcdState:
        """Reconcile the etcd of a cluster by one step; return its state."""
        try:
            await self._check_rules(cluster)
        except NotAllowedError as error:
            return _unready(_NO_ACCESS, "NotAllowed", str(error))
        resolve = await self._resolver(cluster)
        access = resolve(cluster)
        if access is None:
            message = (
                "etcd.useKubeEtcd is set, but no etcd pod was found in kube-system;"
                " set etcd.endpoints instead"
            )
            return _unready(_NO_ACCESS, "NotFound", message)
        try:
            if access.is_managed:
                return await ManagedEtcdReconciler(self._context, cluster, access).reconcile(
                    self._unresponsive
                )
            return await self._observe_external(cluster, access, resolve)
        except KubeError:
            raise
        except KafscaleError as error:
            return _unready(access, "Unusable", str(error))

    def forget(self, uid: str) -> None:
        """Drop the state of a deleted cluster."""
        self._unresponsive.forget(f"{uid}/")
        shutil.rmtree(self._context.directory / uid, ignore_errors=True)

    async def _check_rules(self, cluster: Cluster) -> None:
        """Raise if the cluster may not use the etcd that it names."""
        desired = cluster.spec.etcd
        if desired.endpoints:
            await self._rules.check_etcd_servers(cluster.namespace, desired.endpoints)
        elif desired.use_kube_etcd:
            self._rules.check_kube_etcd()

    async def _resolver(self, cluster: Cluster) -> etcd_access.Resolve:
        """A function that resolves the etcd of this cluster and of others."""
        endpoints: Sequence[str] = ()
        if cluster.spec.etcd.use_kube_etcd and not cluster.spec.etcd.endpoints:
            kube = self._context.kube
            pods = await kube.list(PODS, etcd_access.KUBE_NAMESPACE, etcd_access.KUBE_LABELS)
            endpoints = etcd_access.kube_etcd_endpoints(pods)
        return partial(
            etcd_access.resolve,
            platform=self._context.platform,
            settings_endpoints=self._settings_endpoints,
            kube_etcd_endpoints=endpoints,
        )

    async def _observe_external(
        self, cluster: Cluster, access: EtcdAccess, resolve: etcd_access.Resolve
    ) -> EtcdState:
        """The state of an etcd that the operator does not run."""
        context = self._context
        clusters = await self._list_all(CLUSTERS)
        etcd_objects = [
            each
            for kind in (PODS, SERVICES)
            for each in await self._list_all(kind, {"app": names.ETCD_APP})
        ]
        if current_user := etcd_access.current_user(
            cluster, access.endpoints, clusters, resolve, etcd_objects
        ):
            message = (
                f"this etcd is used by cluster {current_user}, and clusters cannot share one:"
                " set etcd.endpoints to another etcd"
            )
            return _unready(access, "UsedByAnotherCluster", message)
        settings = await etcd_settings(
            context.kube, cluster.namespace, access, context.directory / cluster.uid
        )
        responses = await query_members(
            access.endpoints, settings, context.connect, context.query_ms_max
        )
        usable = [each for each in responses.statuses.values() if each.leader_id]
        reason = "; ".join(responses.failures.values()) or "no member knows a leader"
        return EtcdState(
            access=access,
            is_ready=bool(usable),
            conditions=health.external_conditions(len(usable), access.endpoints, reason),
            settings=settings,
            members=len(responses.member_list) if responses.member_list is not None else None,
            members_ready=len(usable),
            database_bytes=max((each.database_bytes for each in usable), default=None),
        )

    async def _list_all(
        self, kind: Kind, labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """The objects of a kind in all watched namespaces."""
        return [
            each
            for namespace in self._namespaces
            for each in await self._context.kube.list(kind, namespace, labels)
        ]


def _unready(access: EtcdAccess, reason: str, message: str) -> EtcdState:
    return EtcdState(access=access, is_ready=False, conditions=[bad(health.READY, reason, message)])
