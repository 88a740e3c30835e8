"""Carries out what `plan` has decided.

The law: whatever is interrupted between two of its steps leaves a state that `plan` has an answer
to. So a member that comes anew is put into the list before its pod is deleted: the pod that follows
finds an empty volume and an open door.
"""

from functools import partial
from typing import Final

from kafscale.config.sections.etcd import Etcd
from kafscale.metadata.store.etcd.errors import EtcdError
from kafscale.observability.logging import get_logger
from kafscale.operator.etcd.actions import (
    Action,
    Admit,
    Defragment,
    Disarm,
    MakeRoom,
    Promote,
    Remove,
    Restart,
)
from kafscale.operator.etcd.observe import Connect, Connection
from kafscale.operator.etcd.view import EtcdView
from kafscale.operator.kube.api import Kube
from kafscale.operator.kube.kinds import PODS, VOLUME_CLAIMS
from kafscale.operator.manifests.etcd import bootstrap_config, stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import Admission, Door
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster

log = get_logger(__name__)

_NOT_YET: Final = "in sync with leader"


class Doing:
    """Acts on one managed etcd, as it was seen."""

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

    async def do(self, action: Action, view: EtcdView) -> None:
        """Carry it out, unless its time has not come yet."""
        if await self._do(action, view):
            log.info("etcd tended", cluster=self._cluster.name, action=repr(action))

    async def _do(self, action: Action, view: EtcdView) -> bool:
        """Whether it was done."""
        match action:
            case Remove():
                await self._remove(action, view)
            case Admit():
                await self._admit(action, view)
            case Promote():
                return await self._promote(action, view)
            case Restart():
                await self._kube.delete(
                    PODS, self._cluster.namespace, self._name(action.index), uid=action.pod_uid
                )
            case MakeRoom():
                await self._make_room(action, view)
            case Disarm():
                async with self._anybody(view) as etcd:
                    await etcd.disarm(action.alarm)
            case Defragment():
                async with self._connect(self._url(action.index), self._settings) as etcd:
                    await etcd.defragment()
        return True

    def _anybody(self, view: EtcdView, but: int = -1) -> Connection:
        """A member that is healthy, the leader if it can be."""
        able = [each for each in view.healthy if each.index != but]
        able.sort(key=lambda each: not each.is_leader)
        return self._connect(self._url(able[0].index), self._settings)

    async def _remove(self, action: Remove, view: EtcdView) -> None:
        async with self._anybody(view, but=action.index) as etcd:
            await etcd.remove_member(action.member_id)

    async def _admit(self, action: Admit, view: EtcdView) -> None:
        member, space = view.members[action.index], self._cluster.namespace
        # A claim stays until no pod uses it, and until then no other pod is made.
        claim = stateful_set.volume_claim(self._cluster, action.index)
        await self._kube.delete(VOLUME_CLAIMS, space, claim)
        async with self._anybody(view) as etcd:
            await etcd.add_member([member.peer_url], learner=True)
        indices = sorted({*(each.index for each in view.seated), action.index})
        admission = Admission(Door.OPEN, self._members(indices), view.admission.snapshot)
        await self._kube.apply(bootstrap_config.config_map(self._cluster, admission))
        await self._kube.delete(PODS, space, member.name)

    async def _promote(self, action: Promote, view: EtcdView) -> bool:
        async with self._anybody(view, but=action.index) as etcd:
            try:
                await etcd.promote_member(action.member_id)
            except EtcdError as error:
                if _NOT_YET not in str(error):
                    raise
                return False
        return True

    async def _make_room(self, action: MakeRoom, view: EtcdView) -> None:
        async with self._anybody(view) as etcd:
            await etcd.compact((await etcd.status()).revision)
        for index in action.indices:
            async with self._connect(self._url(index), self._settings) as etcd:
                await etcd.defragment()
        async with self._anybody(view) as etcd:
            for alarm in action.alarms:
                await etcd.disarm(alarm)
