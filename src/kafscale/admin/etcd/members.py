"""Status and defragmentation of the members of etcd."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

import msgspec

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
Statuses = dict[str, MemberStatus | KafscaleError]
"""By endpoint; a member that did not respond has its error."""


class MemberInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A member of etcd; what is unknown is None."""

    name: str
    endpoint: str
    id: str | None = None
    role: str = "unknown"
    version: str | None = None
    database_bytes: int | None = None
    used_bytes: int | None = None
    revision: int | None = None
    alarms: list[str] = []
    problems: list[str] = []


class EtcdStatus(msgspec.Struct, frozen=True):
    leader: str | None
    members: list[MemberInfo]


class DefragmentedMember(msgspec.Struct, frozen=True, rename="camel"):
    endpoint: str
    before_bytes: int
    after_bytes: int


async def status(settings: Etcd) -> EtcdStatus:
    """The status of all members: those of the settings, and others that these know."""
    async with AsyncExitStack() as stack:
        clients = await _connect(settings, stack)
        by_endpoint = await _statuses(clients)
        known, alarms = await _members_and_alarms(clients, by_endpoint)
    members = [
        _queried_member(endpoint, response, known, alarms)
        for endpoint, response in by_endpoint.items()
    ]
    queried = {each.member_id for each in by_endpoint.values() if isinstance(each, MemberStatus)}
    members += [_other_member(each, alarms) for each in known.values() if each.id not in queried]
    leader = next((each for each in members if each.role == "leader"), None)
    return EtcdStatus(leader=leader.name if leader else None, members=members)


async def defragment(settings: Etcd, progress: Progress) -> list[DefragmentedMember]:
    """Defragment all members, one at a time and the leader last.

    It stops at the first failure, because the quorum then depends on the other members.
    """
    async with AsyncExitStack() as stack:
        clients = await _connect(settings, stack)
        by_endpoint = await _statuses(clients)
        for endpoint, response in by_endpoint.items():
            if not isinstance(response, MemberStatus):
                raise KafscaleError(
                    f"{response}; nothing was done, because a member is unavailable while it is"
                    f" defragmented: repair {endpoint} first, or leave it out of etcd.endpoints"
                )
        before = {key: each for key, each in by_endpoint.items() if isinstance(each, MemberStatus)}
        order = sorted(before, key=lambda endpoint: before[endpoint].is_leader)
        results = []
        for index, endpoint in enumerate(order):
            progress(index, len(order))
            await clients[endpoint].defragment()
            after = await clients[endpoint].status()
            results.append(
                DefragmentedMember(endpoint, before[endpoint].database_bytes, after.database_bytes)
            )
        progress(len(order), len(order))
        return results


async def _connect(settings: Etcd, stack: AsyncExitStack) -> dict[str, Maintenance]:
    return {
        endpoint: await stack.enter_async_context(Maintenance(endpoint, settings))
        for endpoint in settings.endpoints
    }


async def _statuses(clients: dict[str, Maintenance]) -> Statuses:
    by_endpoint = await statuses(clients)
    if not any(isinstance(response, MemberStatus) for response in by_endpoint.values()):
        raise KafscaleError("\n".join(str(response) for response in by_endpoint.values()))
    return by_endpoint


async def _members_and_alarms(
    clients: dict[str, Maintenance], by_endpoint: Statuses
) -> tuple[dict[int, EtcdMember], Sequence[Alarm]]:
    """The members and alarms that the quorum agrees on; empty if there is no quorum."""
    for endpoint, response in by_endpoint.items():
        if isinstance(response, MemberStatus) and response.has_quorum_view:
            members = await clients[endpoint].members()
            return {each.id: each for each in members}, await clients[endpoint].alarms()
    return {}, ()


def _queried_member(
    endpoint: str,
    response: MemberStatus | KafscaleError,
    known: dict[int, EtcdMember],
    alarms: Sequence[Alarm],
) -> MemberInfo:
    if not isinstance(response, MemberStatus):
        return MemberInfo(name="", endpoint=endpoint, role="unreachable", problems=[str(response)])
    member = known.get(response.member_id)
    problems = list(response.errors)
    if not response.leader_id:
        problems.append("it has no leader")
    return MemberInfo(
        name=member.name if member else "",
        endpoint=endpoint,
        id=f"{response.member_id:x}",
        role=_role(response),
        version=response.version,
        database_bytes=response.database_bytes,
        used_bytes=response.database_used_bytes,
        revision=response.revision,
        alarms=_alarms(response.member_id, alarms),
        problems=problems,
    )


def _other_member(member: EtcdMember, alarms: Sequence[Alarm]) -> MemberInfo:
    return MemberInfo(
        name=member.name,
        endpoint=",".join(member.client_urls),
        id=f"{member.id:x}",
        role="unstarted" if not member.name else "unknown",
        alarms=_alarms(member.id, alarms),
        problems=["it did not respond, or is not in etcd.endpoints"],
    )


def _role(response: MemberStatus) -> str:
    if response.is_learner:
        return "learner"
    return "leader" if response.is_leader else "follower"


def _alarms(member_id: int, alarms: Sequence[Alarm]) -> list[str]:
    return [alarm.kind for alarm in alarms if alarm.member_id == member_id]
