"""What `kafscale etcd` asks of members, one by one: data for tables and JSON."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.metadata.store.etcd.maintenance import (
    Alarm,
    EtcdMember,
    Maintenance,
    MemberStatus,
    statuses,
)

Progress = Callable[[int, int], None]


async def status(settings: Etcd) -> dict[str, Any]:
    """All members: those that were asked, and those that others only know of."""
    async with AsyncExitStack() as stack:
        clients = await _connected(settings, stack)
        told = await _told(clients)
        known, alarms = await _agreed(clients, told)
    members = [_asked(endpoint, answer, known, alarms) for endpoint, answer in told.items()]
    asked = {each.member_id for each in told.values() if isinstance(each, MemberStatus)}
    members += [_unasked(each, alarms) for each in known.values() if each.id not in asked]
    leader = next((each for each in members if each["role"] == "leader"), None)
    return {"leader": leader and leader["name"], "members": members}


async def defragment(settings: Etcd, progress: Progress) -> list[dict[str, Any]]:
    """Defragment all members, one at a time and the leader last; what that has freed.

    It ends at the first that fails, because the others are needed the more for it.
    """
    async with AsyncExitStack() as stack:
        clients = await _connected(settings, stack)
        told = await _told(clients)
        for endpoint, answer in told.items():
            if not isinstance(answer, MemberStatus):
                raise KafscaleError(
                    f"{answer}; nothing was done, because a member is out of reach while it is"
                    f" defragmented: repair {endpoint} first, or leave it out of etcd.endpoints"
                )
        before = {key: each for key, each in told.items() if isinstance(each, MemberStatus)}
        order = sorted(before, key=lambda endpoint: before[endpoint].is_leader)
        freed = []
        for index, endpoint in enumerate(order):
            progress(index, len(order))
            await clients[endpoint].defragment()
            after = await clients[endpoint].status()
            freed.append(
                {
                    "endpoint": endpoint,
                    "beforeBytes": before[endpoint].database_bytes,
                    "afterBytes": after.database_bytes,
                }
            )
        progress(len(order), len(order))
        return freed


async def _connected(settings: Etcd, stack: AsyncExitStack) -> dict[str, Maintenance]:
    return {
        endpoint: await stack.enter_async_context(Maintenance(endpoint, settings))
        for endpoint in settings.endpoints
    }


async def _told(clients: dict[str, Maintenance]) -> dict[str, MemberStatus | KafscaleError]:
    told = await statuses(clients)
    if not any(isinstance(answer, MemberStatus) for answer in told.values()):
        raise KafscaleError("\n".join(str(answer) for answer in told.values()))
    return told


async def _agreed(
    clients: dict[str, Maintenance], told: dict[str, MemberStatus | KafscaleError]
) -> tuple[dict[int, EtcdMember], Sequence[Alarm]]:
    """What most members agree on; nothing, where there is no majority."""
    for endpoint, answer in told.items():
        if isinstance(answer, MemberStatus) and answer.has_quorum_view:
            members = await clients[endpoint].members()
            return {each.id: each for each in members}, await clients[endpoint].alarms()
    return {}, ()


def _asked(
    endpoint: str,
    answer: MemberStatus | KafscaleError,
    known: dict[int, EtcdMember],
    alarms: Sequence[Alarm],
) -> dict[str, Any]:
    if not isinstance(answer, MemberStatus):
        return _row("", endpoint, role="unreachable", problems=[str(answer)])
    found = known.get(answer.member_id)
    problems = list(answer.errors)
    if not answer.leader_id:
        problems.append("it knows no leader")
    return _row(
        found.name if found else "",
        endpoint,
        id=f"{answer.member_id:x}",
        role=_role(answer),
        version=answer.version,
        databaseBytes=answer.database_bytes,
        usedBytes=answer.database_used_bytes,
        revision=answer.revision,
        alarms=_alarms(answer.member_id, alarms),
        problems=problems,
    )


def _unasked(member: EtcdMember, alarms: Sequence[Alarm]) -> dict[str, Any]:
    return _row(
        member.name,
        ",".join(member.client_urls),
        id=f"{member.id:x}",
        role="unstarted" if not member.name else "unknown",
        alarms=_alarms(member.id, alarms),
        problems=["it did not answer, or is not among etcd.endpoints"],
    )


def _row(name: str, endpoint: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "endpoint": endpoint,
        "id": None,
        "role": "unknown",
        "version": None,
        "databaseBytes": None,
        "usedBytes": None,
        "revision": None,
        "alarms": [],
        "problems": [],
    } | more


def _role(status: MemberStatus) -> str:
    if status.is_learner:
        return "learner"
    return "leader" if status.is_leader else "follower"


def _alarms(member_id: int, alarms: Sequence[Alarm]) -> list[str]:
    return [alarm.kind for alarm in alarms if alarm.member_id == member_id]
