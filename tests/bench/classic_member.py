"""A member of a classic group: it joins and syncs, and as the leader shares out ranges."""

from collections.abc import Sequence

from bench.broker_connection import BrokerConnection
from bench.group_member import REBALANCE_TIMEOUT_MS, SESSION_TIMEOUT_MS, GroupSpec, check, commit
from kafscale.groups.assignors.range import range_assignment
from kafscale.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest, OfferedProtocol
from kafscale.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, LeavingMember
from kafscale.protocol.messages.sync_group import SYNC_GROUP, MemberAssignment, SyncGroupRequest

STRATEGY = "range"


class ClassicMember:
    """A member that has an assignment whenever it is not on its way to the next one."""

    def __init__(self, connection: BrokerConnection, group_spec: GroupSpec) -> None:
        self.generation = -1
        self.partitions: Sequence[int] = ()
        self._connection = connection
        self._group_spec = group_spec
        self._member_id = ""

    async def join(self) -> None:
        self.partitions = ()
        while not await self._join_once():
            pass

    async def heartbeat(self) -> None:
        request = HeartbeatRequest(self._group_spec.group, self.generation, self._member_id)
        response = await self._connection.ask(HEARTBEAT, HEARTBEAT.version_max, request)
        if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            await self.join()
        else:
            check(response.error_code)

    async def commit(self, offset: int) -> None:
        await commit(self._connection, self._group_spec, self._member_id, self, offset)

    async def leave(self) -> None:
        request = LeaveGroupRequest(
            self._group_spec.group, members=[LeavingMember(self._member_id)]
        )
        response = await self._connection.ask(LEAVE_GROUP, LEAVE_GROUP.version_max, request)
        check(response.error_code or response.members[0].error_code)

    async def _join_once(self) -> bool:
        """Whether it came as far as an assignment."""
        subscription = encode_subscription(Subscription((self._group_spec.topic,)))
        joined = await self._connection.ask(
            JOIN_GROUP,
            JOIN_GROUP.version_max,
            JoinGroupRequest(
                group_id=self._group_spec.group,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[OfferedProtocol(STRATEGY, subscription)],
            ),
        )
        self._member_id = joined.member_id
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return False
        check(joined.error_code)
        self.generation = joined.generation_id
        return await self._sync([member.member_id for member in joined.members])

    async def _sync(self, member_ids: list[str]) -> bool:
        synced = await self._connection.ask(
            SYNC_GROUP,
            SYNC_GROUP.version_max,
            SyncGroupRequest(
                group_id=self._group_spec.group,
                generation_id=self.generation,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=STRATEGY,
                assignments=self._shares(member_ids),
            ),
        )
        if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        check(synced.error_code)
        self.partitions = decode_assignment(synced.assignment).get(self._group_spec.topic, ())
        return True

    def _shares(self, member_ids: list[str]) -> list[MemberAssignment]:
        """The assignments of all members if this member is the leader, else none."""
        topic = self._group_spec.topic
        subscriptions = dict.fromkeys(member_ids, (topic,))
        shares = range_assignment(subscriptions, {topic: self._group_spec.partitions})
        return [MemberAssignment(each, encode_assignment(share)) for each, share in shares.items()]
