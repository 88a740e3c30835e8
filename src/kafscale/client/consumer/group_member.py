"""A member of a classic group: joins, assigns partitions as leader, sends heartbeats, commits.

Each `join` starts a new generation. After the group has removed the member, it commits nothing and
joins as a new member. `GroupReader` decides when to call which method.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import BrokerResponseError, check
from kafscale.client.group_offsets import NO_GENERATION, commit
from kafscale.groups.assignors import Assignor, range_assignment, round_robin_assignment
from kafscale.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupResponse,
    OfferedProtocol,
)
from kafscale.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, LeavingMember
from kafscale.protocol.messages.sync_group import SYNC_GROUP, MemberAssignment, SyncGroupRequest
from kafscale.text.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafscale.config.sections.client import Consumer

ROUNDS_COUNT_MAX: Final = 100
"""How often a member tries to join; each round waits for the slowest member."""

MEMBERSHIP_LOST_ERRORS: Final = frozenset(
    (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
)
"""Errors of a member that the group has removed, or whose generation has ended."""

_REJOIN_ERRORS: Final = MEMBERSHIP_LOST_ERRORS | {
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.REBALANCE_IN_PROGRESS,
}


class Assign(Protocol):
    """Assigns the partitions of topics to members, by their subscriptions."""

    def __call__(
        self, subscriptions: Mapping[str, Collection[str]], partition_counts: Mapping[str, int], /
    ) -> dict[str, dict[str, list[int]]]: ...


_ASSIGN: Final[dict[Assignor, Assign]] = {
    Assignor.RANGE: range_assignment,
    Assignor.ROUND_ROBIN: round_robin_assignment,
}

CountPartitions = Callable[[Collection[str]], Awaitable[dict[str, int]]]
"""Returns the partition counts of topics, without topics that do not exist."""


class Member:
    """This process as a member of a group."""

    def __init__(
        self,
        coordinator: Coordinator,
        topics: Sequence[str],
        settings: "Consumer",
        count_partitions: CountPartitions,
        assignor: Assignor = Assignor.RANGE,
    ) -> None:
        self.member_id = ""
        self.generation = NO_GENERATION
        self._coordinator = coordinator
        self._subscription = Subscription(tuple(topics))
        self._settings = settings
        self._count_partitions = count_partitions
        self._assignor = assignor
        self._partition_counts: dict[str, int] = {}
        """The partition counts behind the assignment, if this member is the leader."""

    @property
    def group_id(self) -> str:
        return self._coordinator.group_id

    @property
    def is_in_group(self) -> bool:
        return self.generation != NO_GENERATION

    async def join(self) -> list[TopicPartition]:
        """Join the next generation; return the partitions assigned to this member."""
        for _ in range(ROUNDS_COUNT_MAX):
            try:
                return await self._join_and_sync()
            except BrokerResponseError as error:
                if error.error_code not in _REJOIN_ERRORS:
                    raise
                last_error = error
                self._handle_error(error.error_code)
        raise last_error

    async def heartbeat(self) -> bool:
        """Send a heartbeat; return whether the generation is still current."""
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id
        )
        response = await self._coordinator.ask(HEARTBEAT, request, lambda each: each.error_code)
        code = ErrorCode.of(response.error_code)
        if code not in _REJOIN_ERRORS:
            check(f"group {self.group_id}", response.error_code)
        self._handle_error(code)
        return code is ErrorCode.NONE

    async def partitions_changed(self) -> bool:
        """Whether partition counts changed since this member, as leader, assigned partitions."""
        counts = self._partition_counts
        return bool(counts) and counts != await self._count_partitions(counts)

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets as a member of the current generation."""
        if not self.is_in_group:
            raise BrokerResponseError(f"group {self.group_id}", ErrorCode.UNKNOWN_MEMBER_ID)
        try:
            await commit(
                self._coordinator, offsets, generation=self.generation, member_id=self.member_id
            )
        except BrokerResponseError as error:
            self._handle_error(error.error_code)
            raise

    async def leave(self, reason: str) -> None:
        """Leave the group, so that it rebalances at once."""
        if self.member_id:
            request = LeaveGroupRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                members=[LeavingMember(member_id=self.member_id, reason=reason)],
            )
            self._handle_error(ErrorCode.UNKNOWN_MEMBER_ID)
            await self._coordinator.ask(LEAVE_GROUP, request, lambda each: each.error_code)

    async def _join_and_sync(self) -> list[TopicPartition]:
        """Send JoinGroup and SyncGroup; as leader, assign the partitions in between."""
        wait_seconds = self._settings.rebalance_timeout_ms / 1000
        metadata = encode_subscription(self._subscription)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[OfferedProtocol(self._assignor, metadata)],
        )
        joined = await self._coordinator.ask(
            JOIN_GROUP, request, lambda each: each.error_code, wait_seconds=wait_seconds
        )
        # The first response may be an error with the member id to join with (KIP-394).
        self.member_id = joined.member_id or self.member_id
        check(f"group {self.group_id}", joined.error_code, hint=_hint(joined.error_code))
        self.generation = joined.generation_id
        sync = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._assignor,
            assignments=await self._assign(joined),
        )
        synced = await self._coordinator.ask(
            SYNC_GROUP, sync, lambda each: each.error_code, wait_seconds=wait_seconds
        )
        check(f"group {self.group_id}", synced.error_code)
        assignment = decode_assignment(synced.assignment)
        return sorted((name, index) for name, indexes in assignment.items() for index in indexes)

    async def _assign(self, joined: JoinGroupResponse) -> list[MemberAssignment]:
        """Assign partitions to all members, if this member is the leader."""
        self._partition_counts = {}
        if joined.leader != self.member_id:
            return []
        subscriptions = {
            m.member_id: decode_subscription(m.metadata).topics for m in joined.members
        }
        topics = {topic for topics in subscriptions.values() for topic in topics}
        self._partition_counts = await self._count_partitions(topics)
        if joined.skip_assignment:
            return []
        assigned = _ASSIGN[self._assignor](subscriptions, self._partition_counts)
        return [
            MemberAssignment(member_id, encode_assignment(assigned.get(member_id, {})))
            for member_id in subscriptions
        ]

    def _handle_error(self, code: ErrorCode) -> None:
        """Reset the generation, and the member id, if the group has removed the member."""
        if code in MEMBERSHIP_LOST_ERRORS:
            self.generation = NO_GENERATION
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""


def _hint(code: int) -> str:
    if code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
        return "the members of the group use another assignor; try another --assignor"
    return ""
