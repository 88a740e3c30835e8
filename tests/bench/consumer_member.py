"""A member of a group of the consumer protocol (KIP-848), in which the broker shares out."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from bench.broker_connection import BrokerConnection
from bench.group_member import REBALANCE_TIMEOUT_MS, GroupSpec, check, commit
from kafscale.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
)

JOINING = 0
LEAVING = -1


class ConsumerMember:
    """A member that acknowledges every assignment and revocation at once."""

    def __init__(self, connection: BrokerConnection, group_spec: GroupSpec) -> None:
        self.generation = JOINING
        self.partitions: Sequence[int] = ()
        self._connection = connection
        self._group_spec = group_spec
        self._member_id = str(uuid4())

    async def join(self) -> None:
        await self._heartbeat(
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=[self._group_spec.topic],
            owned_partitions=[],
        )

    async def heartbeat(self) -> None:
        await self._heartbeat()

    async def commit(self, offset: int) -> None:
        await commit(self._connection, self._group_spec, self._member_id, self, offset)

    async def leave(self) -> None:
        self.generation = LEAVING
        await self._heartbeat()

    async def _heartbeat(self, **news: Any) -> None:
        request = ConsumerGroupHeartbeatRequest(
            self._group_spec.group, self._member_id, self.generation, **news
        )
        response = await self._connection.ask(
            CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_HEARTBEAT.version_max, request
        )
        check(response.error_code)
        self.generation = response.member_epoch
        if response.assignment is not None:
            owned = response.assignment.assigned_partitions
            self.partitions = tuple(index for topic in owned for index in topic.partitions)
            await self._heartbeat(owned_partitions=owned)
