"""How the store of the metadata does: etcd by its members, or the file of a broker by itself.

The law: etcd is asked by whoever is told where it is. Where a cluster has one and the settings here
do not name it, nothing is claimed about it.
"""

import asyncio
from typing import Any, Final

import msgspec

from kafscale.admin.cluster.snapshot import ClusterLook
from kafscale.admin.etcd import members as etcd_members
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError

LOOK_SECONDS_MAX: Final = 5.0

ETCD: Final = "etcd"
EMBEDDED: Final = "embedded"

HEALTHY: Final = "healthy"
DEGRADED: Final = "degraded"
UNAVAILABLE: Final = "unavailable"
UNKNOWN: Final = "unknown"

_METADATA_PROBLEM: Final = "metadata"
"""Under which brokers tell that their metadata do not arrive."""
_SERVING: Final = frozenset({"leader", "follower"})


class MetadataLook(msgspec.Struct, frozen=True):
    kind: str
    state: str
    member_count: int
    ready_count: int
    database_bytes: int | None
    problem: str | None


def unasked(settings: Etcd) -> MetadataLook | None:
    """What is known of etcd before it was asked; None where the settings name none."""
    if not settings.endpoints:
        return None
    return MetadataLook(ETCD, UNKNOWN, len(settings.endpoints), 0, None, None)


async def etcd_look(settings: Etcd) -> MetadataLook | None:
    """How the members of etcd do; None where the settings name none."""
    if not settings.endpoints:
        return None
    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            return of_members((await etcd_members.status(settings))["members"])
    except TimeoutError:
        problem = f"no member answers within {LOOK_SECONDS_MAX:g} s"
    except KafscaleError as error:
        problem = str(error)
    return MetadataLook(ETCD, UNAVAILABLE, len(settings.endpoints), 0, None, problem)


def metadata_look(members: MetadataLook | None, look: ClusterLook) -> MetadataLook:
    """How the metadata do, of what etcd says, if it was asked, and of what the brokers say."""
    if members is not None:
        return members
    problem = next(
        (
            each.problems[_METADATA_PROBLEM]
            for each in look.brokers
            if _METADATA_PROBLEM in each.problems
        ),
        None,
    )
    if len(look.brokers) > 1:
        hint = "set etcd.endpoints (KAFSCALE_ETCD_ENDPOINTS) here to have it looked at"
        return MetadataLook(ETCD, DEGRADED if problem else UNKNOWN, 0, 0, None, problem or hint)
    if not look.brokers:
        return MetadataLook(EMBEDDED, UNKNOWN, 0, 0, None, None)
    state = UNAVAILABLE if problem else HEALTHY
    return MetadataLook(EMBEDDED, state, 1, 0 if problem else 1, None, problem)


def of_members(members: list[dict[str, Any]]) -> MetadataLook:
    """What the members of etcd come to together.

    >>> leader = {"name": "a", "role": "leader", "databaseBytes": 7, "problems": [], "alarms": []}
    >>> silent = {"name": "b", "role": "unknown", "databaseBytes": None, "problems": ["it sleeps"],
    ...           "alarms": []}
    >>> found = of_members([leader, silent, silent])
    >>> found.state, found.ready_count, found.database_bytes, found.problem
    ('unavailable', 1, 7, 'b: it sleeps')
    """
    ready = [each for each in members if each["role"] in _SERVING and not each["problems"]]
    voting = [each for each in members if each["role"] != "learner"]
    problems = dict.fromkeys(
        f"{each['name'] or each['endpoint']}: {problem}"
        for each in members
        for problem in (*each["problems"], *(f"alarm {alarm}" for alarm in each["alarms"]))
    )
    state = HEALTHY
    if len(ready) * 2 <= len(voting):
        state = UNAVAILABLE
    elif problems:
        state = DEGRADED
    return MetadataLook(
        kind=ETCD,
        state=state,
        member_count=len(members),
        ready_count=len(ready),
        database_bytes=max((each["databaseBytes"] or 0 for each in members), default=0) or None,
        problem="\n".join(problems) or None,
    )
