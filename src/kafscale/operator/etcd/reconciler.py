"""One managed etcd: looked at, brought to what is wanted, and tended by one action at a time.

The laws: certificates come first, then who may begin, then pods. Everything is decided from what is
seen at this moment, but for how long members have been silent, which a new operator begins to count
again. A cluster forms only where there is neither a set nor a word about who may begin: in doubt it
has formed before, and nobody may begin with nothing.
"""

import datetime as dt
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from kafscale.admin.etcd.backups.object_keys import LATEST
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.operator.cluster.etcd_connection import etcd_settings
from kafscale.operator.etcd import certificates, health
from kafscale.operator.etcd.apply import apply, grow_volumes
from kafscale.operator.etcd.combining import combined
from kafscale.operator.etcd.executor import Doing
from kafscale.operator.etcd.leftovers import remains
from kafscale.operator.etcd.observe import Answers, Connect, Objects, ask, find
from kafscale.operator.etcd.plan import admission, plan, replicas
from kafscale.operator.etcd.state import EtcdState
from kafscale.operator.etcd.unresponsive import Silences
from kafscale.operator.etcd.view import EtcdView
from kafscale.operator.kube.api import Kube
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import bootstrap_config, stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import Admission, Door
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.spec.cluster import Cluster

log = get_logger(__name__)


class Surroundings(NamedTuple):
    """What a managed etcd is looked after with."""

    kube: Kube
    platform: Platform
    connect: Connect
    clock: Callable[[], int]
    """In milliseconds."""
    newest_snapshot: Callable[[Cluster], Awaitable[str]]
    """The key of the newest snapshot of a cluster; raises where there is none."""
    directory: Path
    """A private one, for certificates."""
    lost_after_ms: int
    look_ms_max: int


class ManagedEtcd:
    """The etcd of one cluster."""

    def __init__(self, around: Surroundings, cluster: Cluster, access: EtcdAccess) -> None:
        self._around = around
        self._cluster = cluster
        self._access = access

    async def ensure(self, silences: Silences) -> EtcdState:
        """Bring it a step nearer to what it should be; how it is."""
        around, cluster = self._around, self._cluster
        objects = await find(around.kube, cluster)
        if left := remains(objects, cluster.uid):
            raise OperatingError(
                f"a former cluster of this name is not gone yet: {', '.join(left)}"
            )
        trust = await self._issue(objects)
        settings = await etcd_settings(
            around.kube, cluster.namespace, self._access, around.directory
        )
        answers = await ask(self._endpoints(objects), settings, around.connect, around.look_ms_max)
        view = self._see(objects, answers, await self._admission(objects), trust, silences)
        listed = stateful_set.initial_cluster(
            cluster, around.platform, (each.index for each in view.seated)
        )
        await apply(
            around.kube,
            cluster,
            around.platform,
            objects,
            admission=admission(view, listed),
            replicas=replicas(view, _replicas(objects)),
            trust_checksum=trust,
        )
        await grow_volumes(around.kube, cluster, objects)
        doing = Doing(
            around.kube, cluster, around.platform, settings=settings, connect=around.connect
        )
        return self._state(view, settings, is_busy=await self._act(doing, view))

    async def _issue(self, objects: Objects) -> str:
        """Write the certificates that are missing or due; the checksum of whom members trust."""
        around, cluster = self._around, self._cluster
        now = dt.datetime.fromtimestamp(around.clock() / 1000, dt.UTC)
        secrets = dict(objects.secrets)
        for secret in certificates.needed(cluster, around.platform, secrets, now):
            name = secret["metadata"]["name"]
            secrets[name] = await around.kube.apply(secret)
            log.info("certificate issued", cluster=cluster.name, secret=name)
        return certificates.trust_checksum(secrets[names.etcd_server_tls(cluster)])

    async def _act(self, doing: Doing, view: EtcdView) -> bool:
        action = plan(view, self._around.lost_after_ms)
        if action is None:
            return view.admission.door is not Door.CLOSED
        try:
            await doing.do(action, view)
        except KafscaleError as error:
            # It is tried again, if it is still the thing to do by then.
            log.warning(
                "etcd not tended",
                cluster=self._cluster.name,
                action=repr(action),
                reason=str(error),
            )
        return True

    async def _admission(self, objects: Objects) -> Admission:
        """Who may begin, as it was said last, or as it is to be said for the first time."""
        said = bootstrap_config.read(objects.admission)
        if said:
            return said
        if objects.stateful_set:
            return Admission(Door.CLOSED)
        snapshot = self._cluster.spec.etcd.restore_from
        if snapshot == LATEST:
            snapshot = await self._around.newest_snapshot(self._cluster)
        members = stateful_set.initial_cluster(
            self._cluster, self._around.platform, range(self._cluster.spec.etcd.managed.replicas)
        )
        return Admission(Door.FORMING, members, snapshot)

    def _endpoints(self, objects: Objects) -> list[str]:
        """Where members may be: where there are pods."""
        return [
            stateful_set.client_url(self._cluster, self._around.platform, index)
            for index in range(stateful_set.COUNT_MAX)
            if stateful_set.name(self._cluster, index) in objects.pods
        ]

    def _see(
        self, objects: Objects, answers: Answers, said: Admission, trust: str, silences: Silences
    ) -> EtcdView:
        cluster, now_ms = self._cluster, self._around.clock()
        found = combined(
            cluster, self._around.platform, objects, answers, admission=said, trust_checksum=trust
        )
        silent = [
            silences.count(f"{cluster.uid}/{each.index}", now_ms, answers=each.status is not None)
            for each in found.members
        ]
        members = [
            replace(each, silent_ms=silent_ms)
            for each, silent_ms in zip(found.members, silent, strict=True)
        ]
        return replace(found, members=tuple(members))

    def _state(self, view: EtcdView, settings: Etcd, *, is_busy: bool) -> EtcdState:
        sizes = [each.status.database_bytes for each in view.members if each.status]
        return EtcdState(
            access=self._access,
            is_ready=view.has_quorum,
            conditions=health.conditions(view),
            settings=settings,
            members=len(view.seated) if view.is_listed else None,
            members_ready=len(view.healthy),
            database_bytes=max(sizes, default=None),
            is_busy=is_busy,
        )


def _replicas(objects: Objects) -> int:
    """How many pods the set is told to have."""
    return int(objects.stateful_set["spec"].get("replicas", 1)) if objects.stateful_set else 0
