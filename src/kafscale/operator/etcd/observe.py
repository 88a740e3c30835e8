"""Observes an etcd: its objects in Kubernetes and the responses of its members, as one view.

Invariants:

* Observing takes seconds at most, even if members do not respond.
* Nothing is guessed: without a member that knows a leader there is no member list.

A member of the list is identified by its peer URL, because one that has never started has no name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol, Self

import msgspec

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.metadata.store.etcd.maintenance import Alarm, EtcdMember, MemberStatus, statuses
from kafscale.observability.logging import get_logger
from kafscale.operator.etcd import certificates
from kafscale.operator.etcd.view import EtcdView, MemberView, PodView
from kafscale.operator.kube.api import (
    CONFIG_MAPS,
    PODS,
    SECRETS,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Kube,
    Manifest,
)
from kafscale.operator.manifests import names, pods
from kafscale.operator.manifests.etcd import bootstrap_config, stateful_set
from kafscale.operator.manifests.etcd.bootstrap_config import BootstrapConfig
from kafscale.operator.manifests.etcd.restore import restore_for
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster

logger = get_logger(__name__)

QUERY_MS_MAX: Final = 3_000
"""The request timeout of a member."""
RESTARTS_MIN: Final = 3
"""Restarts of a container from which it counts as crashing."""
_REASON_CHARACTERS_MAX: Final = 300
_MISSING_DATA_MESSAGE: Final = "couldn't find local name"
"""What etcd logs if it has no data and is not in the initial cluster; see `bootstrap_config`."""


class Connection(Protocol):
    """A connection to one member as an async context manager; `Maintenance` implements it."""

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
    """The Kubernetes objects of a managed etcd, by name."""

    bootstrap: Manifest | None
    stateful_set: Manifest | None
    pods: Mapping[str, Manifest]
    claims: Mapping[str, Manifest]
    secrets: Mapping[str, Manifest]


class MemberResponses(NamedTuple):
    """What the members responded."""

    statuses: Mapping[str, MemberStatus]
    """By endpoint; unresponsive ones are missing."""
    failures: Mapping[str, str]
    """Why an endpoint is unresponsive."""
    member_list: Sequence[EtcdMember] | None
    """All members, as the quorum agrees; None without a quorum."""
    alarms: Sequence[Alarm]


async def find_objects(kube: Kube, cluster: Cluster) -> Objects:
    """Read the objects from Kubernetes."""
    space, labels = cluster.namespace, names.labels(cluster, names.ETCD_APP)
    secrets = [await kube.get(SECRETS, space, name) for name in certificates.secret_names(cluster)]
    return Objects(
        bootstrap=await kube.get(CONFIG_MAPS, space, bootstrap_config.name(cluster)),
        stateful_set=await kube.get(STATEFUL_SETS, space, names.etcd(cluster)),
        pods=_by_name(await kube.list(PODS, space, labels)),
        claims=_by_name(await kube.list(VOLUME_CLAIMS, space, labels)),
        secrets=_by_name(each for each in secrets if each is not None),
    )


async def query_members(
    endpoints: Sequence[str], settings: Etcd, connect: Connect, query_ms_max: int = QUERY_MS_MAX
) -> MemberResponses:
    """Query all members' status, and the member list and alarms from one with a leader."""
    query_settings = replace(settings, request_timeout_ms=query_ms_max)
    async with AsyncExitStack() as stack:
        members = {
            endpoint: await stack.enter_async_context(connect(endpoint, query_settings))
            for endpoint in endpoints
        }
        results = await statuses(members)
        statuses_by_endpoint = {
            key: each for key, each in results.items() if isinstance(each, MemberStatus)
        }
        failures = {
            key: str(each) for key, each in results.items() if key not in statuses_by_endpoint
        }
        for endpoint, status in statuses_by_endpoint.items():
            if status.has_quorum_view:
                member = members[endpoint]
                try:
                    return MemberResponses(
                        statuses_by_endpoint,
                        failures,
                        await member.members(),
                        await member.alarms(),
                    )
                except KafscaleError as error:
                    logger.info("etcd member list not read", endpoint=endpoint, reason=str(error))
    return MemberResponses(statuses_by_endpoint, failures, None, ())


def _by_name(manifests: Iterable[Manifest]) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in manifests}


class UnresponsiveMembers:
    """Measures for how long members have not responded."""

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def duration_ms(self, name: str, now_ms: int, *, responds: bool) -> int:
        """Milliseconds since a member first failed to respond; 0 if it responds.

        >>> members = UnresponsiveMembers()
        >>> [members.duration_ms("a", now, responds=now == 30) for now in (10, 20, 30, 40)]
        [0, 10, 0, 0]
        """
        if responds:
            self._since_ms.pop(name, None)
            return 0
        return now_ms - self._since_ms.setdefault(name, now_ms)

    def forget(self, prefix: str) -> None:
        """Drop all members whose name has this prefix."""
        for name in [each for each in self._since_ms if each.startswith(prefix)]:
            del self._since_ms[name]


def build_view(
    cluster: Cluster,
    platform: Platform,
    objects: Objects,
    responses: MemberResponses,
    *,
    bootstrap: BootstrapConfig,
    trust_checksum: str,
) -> EtcdView:
    """Combine objects and responses; `unresponsive_ms` is left to the caller."""
    desired = cluster.spec.etcd.managed.replicas
    entries, unknown_members = _entries(cluster, platform, responses)
    count = max([desired, *(index + 1 for index in entries)])
    template = stateful_set.template(
        cluster, platform, trust_checksum=trust_checksum, restore=restore_for(bootstrap)
    )
    return EtcdView(
        desired=desired,
        members=tuple(
            _member(cluster, platform, objects, responses, index=index, entry=entries.get(index))
            for index in range(count)
        ),
        bootstrap=bootstrap,
        checksum=stateful_set.checksum(template),
        has_member_list=responses.member_list is not None,
        unknown_members=unknown_members,
        alarms=tuple(responses.alarms),
        may_defragment=cluster.spec.etcd.managed.defragment,
    )


def _entries(
    cluster: Cluster, platform: Platform, responses: MemberResponses
) -> tuple[Mapping[int, EtcdMember], tuple[EtcdMember, ...]]:
    """The entries of the member list by index, and the entries of unknown members."""
    member_list = {url: each for each in responses.member_list or () for url in each.peer_urls}
    entries: dict[int, EtcdMember] = {}
    for index in range(stateful_set.COUNT_MAX):
        entry = member_list.get(stateful_set.peer_url(cluster, platform, index))
        if entry:
            entries[index] = entry
    ours = {each.id for each in entries.values()}
    return entries, tuple(each for each in responses.member_list or () if each.id not in ours)


def _member(
    cluster: Cluster,
    platform: Platform,
    objects: Objects,
    responses: MemberResponses,
    *,
    index: int,
    entry: EtcdMember | None,
) -> MemberView:
    name = stateful_set.name(cluster, index)
    pod = objects.pods.get(name)
    return MemberView(
        index=index,
        name=name,
        peer_url=stateful_set.peer_url(cluster, platform, index),
        entry=entry,
        status=responses.statuses.get(stateful_set.client_url(cluster, platform, index)),
        pod=pod_view(pod) if pod else None,
        has_volume=has_volume(objects.claims.get(stateful_set.volume_claim(cluster, index))),
    )


class _LogLine(msgspec.Struct):
    msg: str
    error: str = ""


def pod_view(pod: Manifest) -> PodView:
    """The relevant fields of a pod."""
    is_ready = pods.is_ready(pod)
    containers = list(_containers(pod))
    reason = next(filter(None, map(_reason, containers)), "")
    return PodView(
        uid=pod["metadata"]["uid"],
        checksum=stateful_set.checksum(pod),
        is_ready=is_ready,
        is_terminating=pods.is_terminating(pod),
        is_crashing=not is_ready and any(map(_is_crashing, containers)),
        reason=reason,
        is_missing_data=not is_ready and _MISSING_DATA_MESSAGE in reason,
    )


def has_volume(claim: Manifest | None) -> bool:
    """Whether the volume exists, or will once the claim is bound."""
    return claim is not None and (claim.get("status") or {}).get("phase") != "Lost"


def _containers(pod: Manifest) -> Iterator[dict[str, Any]]:
    status = pod.get("status") or {}
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _is_crashing(container: dict[str, Any]) -> bool:
    waiting = (container.get("state") or {}).get("waiting") or {}
    is_backing_off = waiting.get("reason") == "CrashLoopBackOff"
    return is_backing_off or container.get("restartCount", 0) >= RESTARTS_MIN


def _reason(container: dict[str, Any]) -> str:
    """The last log line of a container that failed, or why it was terminated."""
    for state in (container.get("state"), container.get("lastState")):
        terminated = (state or {}).get("terminated") or {}
        if terminated.get("exitCode"):
            message = _log_message((terminated.get("message") or "").strip().rpartition("\n")[2])
            reason: str = (
                message or terminated.get("reason") or f"exit code {terminated['exitCode']}"
            )
            return reason[:_REASON_CHARACTERS_MAX]
    return ""


def _log_message(line: str) -> str:
    """The message of a log line; etcd logs JSON.

    >>> _log_message('{"level":"fatal","msg":"discovery failed","error":"no name"}')
    'discovery failed: no name'
    """
    try:
        entry = msgspec.json.decode(line, type=_LogLine)
    except msgspec.MsgspecError:
        return line
    return ": ".join(filter(None, (entry.msg, entry.error)))
