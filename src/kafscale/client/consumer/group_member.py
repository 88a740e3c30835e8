"""A member of a classic group: joins, hands out partitions if it leads, stays, commits and leaves.

The laws: one generation after the other, each begun by `join`; whoever is told that the group has
forgotten it commits nothing any more and joins as somebody new. When to do which of these is left
to `consume_group`.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import AnsweredError, check
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
from kafscale.groups.model import TopicPartition
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

if TYPE_CHECKING:
    from kafscale.config.sections.client import Consumer

ROUNDS_COUNT_MAX: Final = 100
"""How often it joins in vain before it gives up; each round waits for the slowest member."""

FORGOTTEN: Final = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION))
"""Answers that tell a member that the group has gone on without it."""

_JOIN_AGAIN: Final = FORGOTTEN | {ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS}


class Assign(Protocol):
    """Hands the partitions of topics out to members, by their subscriptions."""

    def __call__(
        self, subscriptions: Mapping[str, Collection[str]], partition_counts: Mapping[str, int], /
    ) -> dict[str, dict[str, list[int]]]: ...


_ASSIGN: Final[dict[Assignor, Assign]] = {
    Assignor.RANGE: range_assignment,
    Assignor.ROUND_ROBIN: round_robin_assignment,
}

CountPartitions = Callable[[Collection[str]], Awaitable[dict[str, int]]]
"""Tells how many partitions each of these topics has; those that do not exist are left out."""


class Member:
    """This process, as its group knows it."""

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
        self._counted: dict[str, int] = {}
        """What the assignment of this generation was made from, where this member made it."""

    @property
    def group_id(self) -> str:
        return self._coordinator.group_id

    @property
    def is_in_group(self) -> bool:
        return self.generation != NO_GENERATION

    async def join(self) -> list[TopicPartition]:
        """Take part in the next generation; the partitions that are this member's in it."""
        for _ in range(ROUNDS_COUNT_MAX):
            try:
                return await self._round()
            except AnsweredError as error:
                if error.answer not in _JOIN_AGAIN:
                    raise
                refused = error
                self._heed(error.answer)
        raise refused

    async def heartbeat(self) -> bool:
        """Show that it is alive; whether its generation goes on."""
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id
        )
        response = await self._coordinator.ask(HEARTBEAT, request, lambda each: each.error_code)
        answer = ErrorCode.of(response.error_code)
        if answer not in _JOIN_AGAIN:
            check(f"group {self.group_id}", response.error_code)
        self._heed(answer)
        return answer is ErrorCode.NONE

    async def has_outgrown(self) -> bool:
        """Whether it leads, and topics have changed since it handed their partitions out."""
        return bool(self._counted) and self._counted != await self._count_partitions(self._counted)

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets in the name of this generation."""
        if not self.is_in_group:
            raise AnsweredError(f"group {self.group_id}", ErrorCode.UNKNOWN_MEMBER_ID)
        try:
            await commit(
                self._coordinator, offsets, generation=self.generation, member_id=self.member_id
            )
        except AnsweredError as error:
            self._heed(error.answer)
            raise

    async def leave(self, reason: str) -> None:
        """Tell the group to go on without this member at once."""
        if self.member_id:
            request = LeaveGroupRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                members=[LeavingMember(member_id=self.member_id, reason=reason)],
            )
            self._heed(ErrorCode.UNKNOWN_MEMBER_ID)
            await self._coordinator.ask(LEAVE_GROUP, request, lambda each: each.error_code)

    async def _round(self) -> list[TopicPartition]:
        """Join, and learn the assignment or make it."""
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
        # Its first answer may be a refusal that tells only the id to join with (KIP-394).
        self.member_id = joined.member_id or self.member_id
        check(f"group {self.group_id}", joined.error_code, hint=_hint(joined.error_code))
        self.generation = joined.generation_id
        sync = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._assignor,
            assignments=await self._assigned(joined),
        )
        synced = await self._coordinator.ask(
            SYNC_GROUP, sync, lambda each: each.error_code, wait_seconds=wait_seconds
        )
        check(f"group {self.group_id}", synced.error_code)
        assignment = decode_assignment(synced.assignment)
        return sorted((name, index) for name, indexes in assignment.items() for index in indexes)

    async def _assigned(self, joined: JoinGroupResponse) -> list[MemberAssignment]:
        """What the leader hands out; nothing, where somebody else leads."""
        self._counted = {}
        if joined.leader != self.member_id:
            return []
        wanted = {m.member_id: decode_subscription(m.metadata).topics for m in joined.members}
        topics = {topic for topics in wanted.values() for topic in topics}
        self._counted = await self._count_partitions(topics)
        if joined.skip_assignment:
            return []
        assigned = _ASSIGN[self._assignor](wanted, self._counted)
        return [
            MemberAssignment(member_id, encode_assignment(assigned.get(member_id, {})))
            for member_id in wanted
        ]

    def _heed(self, answer: ErrorCode) -> None:
        """Forget what the group has forgotten."""
        if answer in FORGOTTEN:
            self.generation = NO_GENERATION
        if answer is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""


def _hint(code: int) -> str:
    if code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
        return "its members share out partitions in another way; try another --assignor"
    return ""
