"""Reads the partitions that a group assigns to this member, and commits consumed offsets.

Invariants:
* Only offsets of consumed records are committed (at-least-once): no record is lost, and at most
  the records since the last commit are read twice.
* Before the next generation is joined, partitions are released and their offsets committed.

Offsets are committed after each heartbeat, before a rebalance and at the end.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Self

from kafscale.client.consumer.group_member import MEMBERSHIP_LOST_ERRORS, Member
from kafscale.client.consumer.reader import Chunk
from kafscale.client.errors import BrokerResponseError
from kafscale.client.group_offsets import by_topic
from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.text.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafscale.config.sections.client import Consumer

HEARTBEATS_PER_METADATA_CHECK: Final = 10
"""The leader checks the partition counts of topics after this number of heartbeats."""

LEAVE_SECONDS_MAX: Final = 5.0

Batches = AsyncGenerator[Chunk, None]
Open = Callable[[Sequence[TopicPartition]], Awaitable[Batches]]
"""Opens partitions at their committed offsets."""


class GroupReader:
    """A consumer in a group. An asynchronous context manager: its exit commits and leaves."""

    def __init__(
        self,
        member: Member,
        open_partitions: Open,
        settings: "Consumer",
        *,
        follow: bool,
        notify: Callable[[str], None],
        clock: Callable[[], int],
    ) -> None:
        """Without `follow`, reading stops at the end of the first assigned partitions."""
        self._member = member
        self._open = open_partitions
        self._settings = settings
        self._follow = follow
        self._notify = notify
        self._clock = clock
        self._consumed: dict[TopicPartition, int] = {}
        """The offsets to commit, of records consumed since the last commit."""
        self._yielded_ms: int | None = None
        """When the chunk that is being consumed was yielded."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            async with asyncio.timeout(LEAVE_SECONDS_MAX):
                await self._commit()
                await self._member.leave("the consumer was closed")
        except (KafscaleError, TimeoutError) as error:
            self._notify(f"could not commit and leave group {self._member.group_id}: {error}")

    async def batches(self) -> Batches:
        """Yield the records of the assigned partitions as they arrive."""
        is_at_end = False
        while not is_at_end:
            topic_partitions = await self._member.join()
            self._notify_assignment(topic_partitions)
            heartbeats = asyncio.ensure_future(self._send_heartbeats())
            try:
                async with aclosing(await self._open(topic_partitions)) as batches:
                    while (chunk := await self._next(batches, heartbeats)) is not None:
                        self._yielded_ms = self._clock()
                        yield chunk
                        self._yielded_ms = None
                is_at_end = not heartbeats.done()
            finally:
                heartbeats.cancel()
                await asyncio.gather(heartbeats, return_exceptions=True)
            await self._commit()
            # The partitions may belong to another member now.
            self._consumed.clear()

    def mark_consumed(self, topic_partition: TopicPartition, next_offset: int) -> None:
        """Record that all records before this offset were consumed."""
        self._consumed[topic_partition] = next_offset

    async def _next(self, batches: Batches, heartbeats: "asyncio.Task[None]") -> Chunk | None:
        """The next chunk; None if the group rebalances or the end is reached."""
        next_chunk = asyncio.ensure_future(anext(batches, None))
        try:
            if not heartbeats.done():
                await asyncio.wait([next_chunk, heartbeats], return_when=asyncio.FIRST_COMPLETED)
            if next_chunk.done() and next_chunk.result() is None and self._follow:
                # This member has no partitions; wait for the next generation.
                await asyncio.wait([heartbeats])
            if heartbeats.done():
                heartbeats.result()
                return None
            return next_chunk.result()
        finally:
            next_chunk.cancel()
            await asyncio.gather(next_chunk, return_exceptions=True)

    async def _send_heartbeats(self) -> None:
        """Send heartbeats and commit until the group rebalances."""
        for count in itertools.count(1):
            await asyncio.sleep(self._settings.heartbeat_interval_ms / 1000)
            if self._is_stuck():
                self._notify(
                    f"records were not consumed within max.poll.interval.ms: leaving group"
                    f" {self._member.group_id} until they are"
                )
                await self._member.leave("max.poll.interval.ms exceeded")
                return
            if not await self._member.heartbeat():
                return
            await self._commit()
            if (
                count % HEARTBEATS_PER_METADATA_CHECK == 0
                and await self._member.partitions_changed()
            ):
                return

    def _is_stuck(self) -> bool:
        since_ms = self._yielded_ms
        limit_ms = self._settings.max_poll_interval_ms
        return since_ms is not None and self._clock() - since_ms > limit_ms

    async def _commit(self) -> None:
        offsets = dict(self._consumed)
        if not offsets:
            return
        try:
            await self._member.commit(offsets)
        except BrokerResponseError as error:
            if error.error_code is ErrorCode.REBALANCE_IN_PROGRESS:
                return  # The next heartbeat reports the rebalance.
            if error.error_code not in MEMBERSHIP_LOST_ERRORS:
                raise
            self._notify(
                f"group {self._member.group_id} removed this member before its last offsets were"
                " committed; some records may be consumed again"
            )
        for topic_partition, offset in offsets.items():
            if self._consumed.get(topic_partition) == offset:
                del self._consumed[topic_partition]

    def _notify_assignment(self, topic_partitions: Sequence[TopicPartition]) -> None:
        topics = "; ".join(
            f"{name} {','.join(map(str, indexes))}" for name, indexes in by_topic(topic_partitions)
        )
        self._notify(
            f"group {self._member.group_id}, generation {self._member.generation}:"
            f" {topics or 'no partitions assigned'}"
        )
