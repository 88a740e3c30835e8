"""Looking at an etcd: its objects in Kubernetes, and its members, all at once.

The laws: looking takes seconds at the most, whoever does not answer; and what cannot be told is not
guessed: without a member that knows a leader there is no list.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final, NamedTuple, Protocol, Self

import msgspec

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.metadata.store.etcd.maintenance import Alarm, EtcdMember, MemberStatus, statuses
from kafscale.observability.logging import get_logger
from kafscale.operator.etcd import certificates
from kafscale.operator.kube.api import Kube, Manifest
from kafscale.operator.kube.kinds import CONFIG_MAPS, PODS, SECRETS, STATEFUL_SETS, VOLUME_CLAIMS
from kafscale.operator.manifests import names
from kafscale.operator.manifests.etcd import bootstrap_config
from kafscale.operator.spec.cluster import Cluster

log = get_logger(__name__)

LOOK_MS_MAX: Final = 3_000
"""How long a member may take to say how it is."""


class Connection(Protocol):
    """A member that is connected to as long as a block lasts; `Maintenance` is one."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def status(self) -> MemberStatus: ...
    async def members(self) -> list[EtcdMember]: ...
    async def alarms(self) -> list[Alarm]: ...
    async def disarm(self, alarm: Alarm) -> None: ...
    async def compact(self, revision: int) -> None: ...
    async def defragment(self) -> None: ...
    async def remove_member(self, member_id: int) -> None: ...
    async def promote_member(self, member_id: int) -> None: ...
    async def add_member(
        self, peer_urls: Sequence[str], *, learner: bool = False
    ) -> EtcdMember: ...


Connect = Callable[[str, Etcd], Connection]
"""Makes a connection from an endpoint and settings."""


class Objects(msgspec.Struct, frozen=True, kw_only=True):
    """What Kubernetes has of a managed etcd, by names."""

    admission: Manifest | None
    stateful_set: Manifest | None
    pods: Mapping[str, Manifest]
    claims: Mapping[str, Manifest]
    secrets: Mapping[str, Manifest]


class Answers(NamedTuple):
    """What members have said."""

    statuses: Mapping[str, MemberStatus]
    """By endpoint; those that are not here do not answer."""
    failures: Mapping[str, str]
    """Why not, by endpoint."""
    listed: Sequence[EtcdMember] | None
    """All members, as most of them have agreed; None if most are not there."""
    alarms: Sequence[Alarm]


async def find(kube: Kube, cluster: Cluster) -> Objects:
    """See what there is."""
    space, labels = cluster.namespace, names.labels(cluster, names.ETCD_APP)
    secrets = [await kube.get(SECRETS, space, name) for name in certificates.secret_names(cluster)]
    return Objects(
        admission=await kube.get(CONFIG_MAPS, space, bootstrap_config.name(cluster)),
        stateful_set=await kube.get(STATEFUL_SETS, space, names.etcd(cluster)),
        pods=_by_name(await kube.list(PODS, space, labels)),
        claims=_by_name(await kube.list(VOLUME_CLAIMS, space, labels)),
        secrets=_by_name(each for each in secrets if each is not None),
    )


async def ask(
    endpoints: Sequence[str], settings: Etcd, connect: Connect, look_ms_max: int = LOOK_MS_MAX
) -> Answers:
    """Ask all members how they are, and one of them who else there is."""
    hurried = replace(settings, request_timeout_ms=look_ms_max)
    async with AsyncExitStack() as stack:
        members = {
            endpoint: await stack.enter_async_context(connect(endpoint, hurried))
            for endpoint in endpoints
        }
        told = await statuses(members)
        given = {key: each for key, each in told.items() if isinstance(each, MemberStatus)}
        failures = {key: str(each) for key, each in told.items() if key not in given}
        for endpoint, status in given.items():
            if status.has_quorum_view:
                member = members[endpoint]
                try:
                    return Answers(given, failures, await member.members(), await member.alarms())
                except KafscaleError as error:
                    log.info("etcd does not agree", endpoint=endpoint, reason=str(error))
    return Answers(given, failures, None, ())


def _by_name(manifests: Iterable[Manifest]) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in manifests}
