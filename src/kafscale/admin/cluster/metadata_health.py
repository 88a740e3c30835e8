"""The health of the metadata store: etcd by its members, or the embedded store of a broker.

etcd is checked only if the settings name its endpoints. If a cluster uses etcd and the settings
here do not name it, its state is unknown.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from kafscale.admin.cluster.snapshot import ClusterSnapshot
from kafscale.admin.etcd import members as etcd_members
from kafscale.admin.etcd.members import MemberInfo
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError

CHECK_SECONDS_MAX: Final = 5.0

ETCD: Final = "etcd"
EMBEDDED: Final = "embedded"

HEALTHY: Final = "healthy"
DEGRADED: Final = "degraded"
UNAVAILABLE: Final = "unavailable"
UNKNOWN: Final = "unknown"
MetadataState = Literal["healthy", "degraded", "unavailable", "unknown"]

_METADATA_PROBLEM: Final = "metadata"
"""The key under which brokers report that metadata changes do not arrive."""
_SERVING: Final = frozenset({"leader", "follower"})


class MetadataHealth(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata store and its health."""

    kind: Literal["etcd", "embedded"]
    state: MetadataState
    member_count: int
    ready_count: int
    database_bytes: int | None
    problem: str | None


def unchecked(settings: Etcd) -> MetadataHealth | None:
    """The health of etcd before the first check; None if the settings name no endpoints."""
    if not settings.endpoints:
        return None
    return MetadataHealth(ETCD, UNKNOWN, len(settings.endpoints), 0, None, None)


async def check_etcd(settings: Etcd) -> MetadataHealth | None:
    """Check the members of etcd; None if the settings name no endpoints."""
    if not settings.endpoints:
        return None
    try:
        async with asyncio.timeout(CHECK_SECONDS_MAX):
            return from_members((await etcd_members.status(settings)).members)
    except TimeoutError:
        problem = f"no response from etcd within {CHECK_SECONDS_MAX:g} s"
    except KafscaleError as error:
        problem = str(error)
    return MetadataHealth(ETCD, UNAVAILABLE, len(settings.endpoints), 0, None, problem)


def evaluate(members: MetadataHealth | None, snapshot: ClusterSnapshot) -> MetadataHealth:
    """The health of the metadata, from etcd's members if checked, else from what brokers report."""
    if members is not None:
        return members
    problem = next(
        (
            each.problems[_METADATA_PROBLEM]
            for each in snapshot.brokers
            if _METADATA_PROBLEM in each.problems
        ),
        None,
    )
    if len(snapshot.brokers) > 1:
        hint = "set etcd.endpoints (KAFSCALE_ETCD_ENDPOINTS) here to have etcd checked"
        return MetadataHealth(ETCD, DEGRADED if problem else UNKNOWN, 0, 0, None, problem or hint)
    if not snapshot.brokers:
        return MetadataHealth(EMBEDDED, UNKNOWN, 0, 0, None, None)
    state: MetadataState = UNAVAILABLE if problem else HEALTHY
    return MetadataHealth(EMBEDDED, state, 1, 0 if problem else 1, None, problem)


def from_members(members: Sequence[MemberInfo]) -> MetadataHealth:
    """The health of etcd as a whole.

    >>> leader = MemberInfo(name="a", endpoint="a:2379", role="leader", database_bytes=7)
    >>> silent = MemberInfo(name="b", endpoint="b:2379", problems=["no response"])
    >>> health = from_members([leader, silent, silent])
    >>> health.state, health.ready_count, health.database_bytes, health.problem
    ('unavailable', 1, 7, 'b: no response')
    """
    ready = [each for each in members if each.role in _SERVING and not each.problems]
    voting = [each for each in members if each.role != "learner"]
    problems = dict.fromkeys(
        f"{each.name or each.endpoint}: {problem}"
        for each in members
        for problem in (*each.problems, *(f"alarm {alarm}" for alarm in each.alarms))
    )
    state: MetadataState = HEALTHY
    if len(ready) * 2 <= len(voting):
        state = UNAVAILABLE
    elif problems:
        state = DEGRADED
    return MetadataHealth(
        kind=ETCD,
        state=state,
        member_count=len(members),
        ready_count=len(ready),
        database_bytes=max((each.database_bytes or 0 for each in members), default=0) or None,
        problem="\n".join(problems) or None,
    )
