"""Common parts of the group members of both protocols.

Members send the requests of real clients, but read no records. The bench decides when they send.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.broker_connection import BrokerConnection
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)

SESSION_TIMEOUT_MS = 30_000
REBALANCE_TIMEOUT_MS = 60_000
COMMIT_VERSION = 9
"""The last version with topic names instead of ids."""
CHECK_SECONDS = 0.005


@dataclass(frozen=True)
class GroupSpec:
    """A group, its topic and the number of partitions."""

    group: str
    topic: str
    partitions: int


class Member(Protocol):
    generation: int
    """In a group of the consumer protocol, the member's epoch."""
    partitions: Sequence[int]

    async def join(self) -> None: ...
    async def heartbeat(self) -> None:
        """Send a heartbeat, and follow its response."""

    async def commit(self, offset: int) -> None:
        """Commit an offset for all its partitions."""

    async def leave(self) -> None: ...


def is_stable(members: Sequence[Member], partitions: int) -> bool:
    """Whether all members are in one generation, and share all partitions."""
    shared = sorted(partition for member in members for partition in member.partitions)
    generations = {member.generation for member in members}
    return len(generations) == 1 and shared == list(range(partitions))


async def wait_until_stable(
    members: Sequence[Member], partitions: int, seconds_max: float = 60
) -> float:
    """Wait until the group is stable; return the seconds that it took."""
    began = time.perf_counter()
    async with asyncio.timeout(seconds_max):
        while not is_stable(members, partitions):  # noqa: ASYNC110 - there is no event to wait for.
            await asyncio.sleep(CHECK_SECONDS)
    return time.perf_counter() - began


async def commit(
    connection: BrokerConnection, group_spec: GroupSpec, member_id: str, member: Member, offset: int
) -> None:
    offsets = [PartitionToCommit(partition, offset) for partition in member.partitions]
    topics = [TopicToCommit(group_spec.topic, partitions=offsets)]
    request = OffsetCommitRequest(group_spec.group, member.generation, member_id, topics=topics)
    response = await connection.ask(OFFSET_COMMIT, COMMIT_VERSION, request)
    for each in response.topics[0].partitions:
        check(each.error_code)


def check(code: int) -> None:
    assert code == ErrorCode.NONE, f"the broker returned {ErrorCode(code).name}"
