"""Applies the objects of a managed etcd, and executes the actions that `plan` decides on.

Invariant: an action that is interrupted between two steps leaves a state that `plan` can continue
from. So a replaced member is added to the list before its pod is deleted: the new pod finds an
empty volume and a bootstrap config that allows it to join.

Objects are applied in the order in which pods need them. The volume claim templates of an existing
StatefulSet stay, because Kubernetes does not allow to change them. Instead, claims are resized with
the spec, never shrunk; whether that works depends on the storage class. A NetworkPolicy that is no
longer desired is deleted.
"""

from functools import partial
from typing import Final

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KubeError
from kafscale.metadata.store.etcd.errors import EtcdError
from kafscale.observability.logging import get_logger
from kafscale.operator.etcd.membership import (
    Action,
    AddMember,
    Defragment,
    DisarmAlarm,
    FreeSpace,
    PromoteMember,
    RemoveMember,
    RestartPod,
)
from kafscale.operator.etcd.observe import Connect, Connection, Objects
from kafscale.operator.etcd.view import EtcdView
from kafscale.operator.kube.api import NETWORK_POLICIES, PODS, VOLUME_CLAIMS, Kube
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import service_account
from kafscale.operator.manifests.etcd import bootstrap_config, services, stateful_set
from kafscale.operator.manifests.etcd import stateful_set as etcd_stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig, BootstrapMode
from kafscale.operator.manifests.etcd.restore import restore_for
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster
from kafscale.text.units import parse_size

logger = get_logger(__name__)

_LEARNER_NOT_READY: Final = "in sync with leader"

logger = get_logger(__name__)


class Executor:
    """Executes actions on one managed etcd."""

    def __init__(
        self, kube: Kube, cluster: Cluster, platform: Platform, *, settings: Etcd, connect: Connect
    ) -> None:
        self._kube = kube
        self._cluster = cluster
        self._settings = settings
        self._connect = connect
        self._url = partial(stateful_set.client_url, cluster, platform)
        self._members = partial(stateful_set.initial_cluster, cluster, platform)
        self._name = partial(stateful_set.name, cluster)

    async def execute(self, action: Action, view: EtcdView) -> None:
        """Execute an action, unless it has to wait."""
        if await self._execute(action, view):
            logger.info("etcd action executed", cluster=self._cluster.name, action=repr(action))

    async def _execute(self, action: Action, view: EtcdView) -> bool:
        """Return whether the action was executed."""
        match action:
            case RemoveMember():
                await self._remove(action, view)
            case AddMember():
                await self._add(action, view)
            case PromoteMember():
                return await self._promote(action, view)
            case RestartPod():
                await self._kube.delete(
                    PODS, self._cluster.namespace, self._name(action.index), uid=action.pod_uid
                )
            case FreeSpace():
                await self._free_space(action, view)
            case DisarmAlarm():
                async with self._healthy_member(view) as etcd:
                    await etcd.disarm(action.alarm)
            case Defragment():
                async with self._connect(self._url(action.index), self._settings) as etcd:
                    await etcd.defragment()
        return True

    def _healthy_member(self, view: EtcdView, excluding: int = -1) -> Connection:
        """Connect to a healthy member, preferably the leader."""
        usable = [each for each in view.healthy if each.index != excluding]
        usable.sort(key=lambda each: not each.is_leader)
        return self._connect(self._url(usable[0].index), self._settings)

    async def _remove(self, action: RemoveMember, view: EtcdView) -> None:
        async with self._healthy_member(view, excluding=action.index) as etcd:
            await etcd.remove_member(action.member_id)

    async def _add(self, action: AddMember, view: EtcdView) -> None:
        member, space = view.members[action.index], self._cluster.namespace
        # Kubernetes keeps the claim until its pod is gone, and makes no new pod before that.
        claim = stateful_set.volume_claim(self._cluster, action.index)
        await self._kube.delete(VOLUME_CLAIMS, space, claim)
        async with self._healthy_member(view) as etcd:
            await etcd.add_member([member.peer_url], learner=True)
        indices = sorted({*(each.index for each in view.listed_members), action.index})
        bootstrap = BootstrapConfig(
            BootstrapMode.JOINING, self._members(indices), view.bootstrap.snapshot
        )
        await self._kube.apply(bootstrap_config.config_map(self._cluster, bootstrap))
        await self._kube.delete(PODS, space, member.name)

    async def _promote(self, action: PromoteMember, view: EtcdView) -> bool:
        async with self._healthy_member(view, excluding=action.index) as etcd:
            try:
                await etcd.promote_member(action.member_id)
            except EtcdError as error:
                if _LEARNER_NOT_READY not in str(error):
                    raise
                return False
        return True

    async def _free_space(self, action: FreeSpace, view: EtcdView) -> None:
        async with self._healthy_member(view) as etcd:
            await etcd.compact((await etcd.status()).revision)
        for index in action.indices:
            async with self._connect(self._url(index), self._settings) as etcd:
                await etcd.defragment()
        async with self._healthy_member(view) as etcd:
            for alarm in action.alarms:
                await etcd.disarm(alarm)


async def apply(
    kube: Kube,
    cluster: Cluster,
    platform: Platform,
    objects: Objects,
    *,
    bootstrap: BootstrapConfig,
    replicas: int,
    trust_checksum: str,
) -> None:
    """Apply everything except certificates."""
    restore = restore_for(bootstrap)
    if restore:
        await kube.apply(service_account.service_account(cluster))
    stateful_set = etcd_stateful_set.stateful_set(
        cluster, platform, replicas=replicas, trust_checksum=trust_checksum, restore=restore
    )
    if objects.stateful_set:
        claims = objects.stateful_set["spec"]["volumeClaimTemplates"]
        stateful_set["spec"]["volumeClaimTemplates"] = claims
    policy = services.policy(cluster, platform)
    for manifest in (
        bootstrap_config.config_map(cluster, bootstrap),
        services.headless(cluster),
        services.client(cluster),
        services.pod_disruption_budget(cluster),
        *([policy] if policy else []),
        stateful_set,
    ):
        await kube.apply(manifest)
    if not policy:
        await kube.delete(NETWORK_POLICIES, cluster.namespace, names.etcd(cluster))


async def grow_volumes(kube: Kube, cluster: Cluster, objects: Objects) -> None:
    """Request larger volumes if the spec does."""
    desired = cluster.spec.etcd.managed.storage
    for name, claim in objects.claims.items():
        requested = claim["spec"]["resources"]["requests"]["storage"]
        if parse_size(requested) >= parse_size(desired):
            continue
        patch = {"spec": {"resources": {"requests": {"storage": desired}}}}
        try:
            await kube.merge_patch(VOLUME_CLAIMS, cluster.namespace, name, patch)
        except KubeError as error:
            logger.warning("volume not resized", claim=name, desired=desired, reason=str(error))
