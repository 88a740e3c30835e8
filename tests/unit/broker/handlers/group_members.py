"""Group members for tests: each keeps the state of its last response."""

import asyncio
from typing import Any

from kafscale.broker.requests.context import ClientInfo
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest, OfferedProtocol
from kafscale.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, LeavingMember
from kafscale.protocol.messages.sync_group import SYNC_GROUP, MemberAssignment, SyncGroupRequest
from unit.broker.in_memory_broker import CLIENT, InMemoryBroker

GROUP = "readers"
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 60_000


class Member:
    """A member of a classic group."""

    def __init__(
        self,
        broker: InMemoryBroker,
        *,
        group_id: str = GROUP,
        instance_id: str | None = None,
        metadata: bytes = b"subscription",
    ) -> None:
        self.broker = broker
        self.group_id = group_id
        self.instance_id = instance_id
        self.metadata = metadata
        self.member_id = ""
        self.generation = -1
        self.leader = ""

    @property
    def leads(self) -> bool:
        return self.leader == self.member_id

    async def send_join(self, version: int = JOIN_GROUP.version_max, **fields: Any) -> Any:
        """Send JoinGroup; returns the response, which may be an error."""
        request = JoinGroupRequest(
            **{
                "group_id": self.group_id,
                "session_timeout_ms": SESSION_TIMEOUT_MS,
                "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                "protocol_type": "consumer",
                "protocols": [OfferedProtocol("range", self.metadata)],
                **fields,
            }
        )
        response = await self.broker.ask(JOIN_GROUP, request, version)
        if response.error_code in {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED}:
            self.member_id = response.member_id
        return response

    async def join(self, version: int = JOIN_GROUP.version_max, **fields: Any) -> Any:
        """Join; a second time with the member id, if it is required."""
        response = await self.send_join(version, **fields)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            response = await self.send_join(version, **fields)
        assert response.error_code == ErrorCode.NONE
        self.generation = response.generation_id
        self.leader = response.leader
        return response

    async def sync(
        self,
        assignments: dict[str, bytes] | None = None,
        version: int = SYNC_GROUP.version_max,
        **fields: Any,
    ) -> Any:
        request = SyncGroupRequest(
            **{
                "group_id": self.group_id,
                "generation_id": self.generation,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                "protocol_type": "consumer",
                "protocol_name": "range",
                "assignments": [
                    MemberAssignment(member_id, assigned)
                    for member_id, assigned in (assignments or {}).items()
                ],
                **fields,
            }
        )
        return await self.broker.ask(SYNC_GROUP, request, version)

    async def heartbeat(self, version: int = HEARTBEAT.version_max, **fields: Any) -> ErrorCode:
        request = HeartbeatRequest(
            **{
                "group_id": self.group_id,
                "generation_id": self.generation,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                **fields,
            }
        )
        return ErrorCode.of((await self.broker.ask(HEARTBEAT, request, version)).error_code)

    async def leave(self) -> None:
        leaving = [LeavingMember(self.member_id, self.instance_id)]
        request = LeaveGroupRequest(group_id=self.group_id, members=leaving)
        response = await self.broker.ask(LEAVE_GROUP, request)
        assert [each.error_code for each in response.members] == [ErrorCode.NONE]


async def form_generation(*members: Member, assignment: bytes | None = None) -> Member:
    """Form a stable generation; returns its leader. Members are assigned their id by default."""
    await asyncio.gather(*(member.join() for member in members))
    [leader] = [member for member in members if member.leads]
    assignments = {
        member.member_id: member.member_id.encode() if assignment is None else assignment
        for member in members
    }
    synced = await asyncio.gather(
        *(member.sync(assignments if member is leader else {}) for member in members)
    )
    assert [each.error_code for each in synced] == [ErrorCode.NONE] * len(members)
    return leader


class ConsumerMember:
    """A member of a group of the consumer protocol."""

    def __init__(
        self,
        broker: InMemoryBroker,
        member_id: str,
        *,
        instance_id: str | None = None,
        client: ClientInfo = CLIENT,
    ) -> None:
        self.broker = broker
        self.client = client
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.owned: dict[bytes, list[int]] = {}

    async def ask(self, version: int = CONSUMER_GROUP_HEARTBEAT.version_max, **fields: Any) -> Any:
        """Send ConsumerGroupHeartbeat; returns the response, which may be an error."""
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": GROUP,
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                "group_instance_id": self.instance_id,
                **fields,
            }
        )
        return await self.broker.ask(CONSUMER_GROUP_HEARTBEAT, request, version, client=self.client)

    async def join(self, *topics: str, **fields: Any) -> Any:
        return await self.heartbeat(
            **{
                "member_epoch": 0,
                "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
                "subscribed_topic_names": list(topics),
                "owned_partitions": [],
                **fields,
            }
        )

    async def heartbeat(self, **fields: Any) -> Any:
        """Send a heartbeat that must succeed, and apply its assignment."""
        response = await self.ask(**fields)
        assert response.error_code == ErrorCode.NONE, response.error_message
        self.member_id, self.epoch = response.member_id, response.member_epoch
        if response.assignment is not None:
            self.owned = {
                topic.topic_id: list(topic.partitions)
                for topic in response.assignment.assigned_partitions
            }
        return response

    async def confirm(self) -> Any:
        """Report the owned partitions."""
        owned = [TopicPartitions(topic_id, numbers) for topic_id, numbers in self.owned.items()]
        return await self.heartbeat(owned_partitions=owned)
