"""Members of groups for benches.

async with GroupMembers(ClassicMember, address) as group_members:
    members = await group_members.connect_members(group_spec, 10)
    async with working(members, heartbeats):
        ...
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, Self

from bench.broker_connection import BrokerConnection
from bench.group_member import GroupSpec, Member
from bench.periodic_task import PeriodicTask
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest

RETRIABLE: Final = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
PAUSE_SECONDS = 0.05


class GroupMembers:
    """Members of one protocol at one broker, each with its own connection."""

    def __init__(self, kind: Callable[[BrokerConnection, GroupSpec], Member], address: str) -> None:
        self._kind = kind
        self._address = address
        self._connections: list[BrokerConnection] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()

    async def connect_members(self, group_spec: GroupSpec, count: int) -> list[Member]:
        """Connect members to the coordinator of their group; they have not joined yet."""
        connections = [await BrokerConnection.open(self._address) for _ in range(count)]
        self._connections += connections
        while await _coordinator_error(connections[0], group_spec.group) in RETRIABLE:  # noqa: ASYNC110
            await asyncio.sleep(PAUSE_SECONDS)
        return [self._kind(connection, group_spec) for connection in connections]


async def _coordinator_error(connection: BrokerConnection, group: str) -> int:
    """The error while the broker is not the coordinator yet; Kafka starts on FindCoordinator."""
    ask = FindCoordinatorRequest(key=group, keys=[group])
    await connection.ask(FIND_COORDINATOR, FIND_COORDINATOR.version_max, ask)
    described = DescribeGroupsRequest([group])
    response = await connection.ask(DESCRIBE_GROUPS, DESCRIBE_GROUPS.version_max, described)
    return response.groups[0].error_code


@asynccontextmanager
async def working(members: Iterable[Member], heartbeats: PeriodicTask) -> AsyncIterator[None]:
    """Join all members; send heartbeats until the block ends."""

    async def work(member: Member) -> None:
        await member.join()
        await heartbeats.run(member.heartbeat)

    async with running(work(member) for member in members):
        yield


@asynccontextmanager
async def running(works: Iterable[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run all tasks concurrently; the failure of one ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
        yield
        for task in tasks:
            task.cancel()
