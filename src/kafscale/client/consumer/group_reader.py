"""Reads what a group assigns to this process, commits what was printed, and follows rebalances.

The laws: only what was printed is committed, so that nothing is lost, and what is printed twice is
no more than what one commit lacked; partitions are given up, with a last commit, before the next
generation is joined. Commits go with the heartbeats, when the group rebalances and at the end.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Self

from kafscale.client.consumer.group_member import FORGOTTEN, Member
from kafscale.client.consumer.reader import Chunk
from kafscale.client.errors import AnsweredError
from kafscale.client.group_offsets import by_topic
from kafscale.errors import KafscaleError
from kafscale.groups.model import TopicPartition
from kafscale.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafscale.config.sections.client import Consumer

BEATS_PER_LOOK: Final = 10
"""How many heartbeats lie between two looks of the leader at how many partitions there are."""

LEAVE_SECONDS_MAX: Final = 5.0

Batches = AsyncGenerator[Chunk, None]
Open = Callable[[Sequence[TopicPartition]], Awaitable[Batches]]
"""Begins to read partitions where the group has come to in each."""


class GroupReader:
    """A consumer in a group. An asynchronous context manager: its end is a commit and a leave."""

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
        """Without `follow`, it ends where the partitions that it is assigned first end."""
        self._member = member
        self._open = open_partitions
        self._settings = settings
        self._follow = follow
        self._notify = notify
        self._clock = clock
        self._printed: dict[TopicPartition, int] = {}
        """The offsets to commit: those behind what was printed since the last commit."""
        self._handed_out_ms: int | None = None
        """Since when the records that were handed out last are being printed."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            async with asyncio.timeout(LEAVE_SECONDS_MAX):
                await self._commit()
                await self._member.leave("the consumer ends")
        except (KafscaleError, TimeoutError) as error:
            self._notify(f"group {self._member.group_id} was not left in order: {error}")

    async def batches(self) -> Batches:
        """The records of the partitions that are this member's, as they come."""
        is_at_end = False
        while not is_at_end:
            places = await self._member.join()
            self._tell_assignment(places)
            attending = asyncio.ensure_future(self._attend())
            try:
                async with aclosing(await self._open(places)) as batches:
                    while (chunk := await self._next(batches, attending)) is not None:
                        self._handed_out_ms = self._clock()
                        yield chunk
                        self._handed_out_ms = None
                is_at_end = not attending.done()
            finally:
                attending.cancel()
                await asyncio.gather(attending, return_exceptions=True)
            await self._commit()
            # What could not be committed is no longer this member's to say.
            self._printed.clear()

    def printed(self, place: TopicPartition, next_offset: int) -> None:
        """Take note that everything before this offset has been printed."""
        self._printed[place] = next_offset

    async def _next(self, batches: Batches, attending: "asyncio.Task[None]") -> Chunk | None:
        """What comes next; None when the group rebalances, or when the end has been reached."""
        coming = asyncio.ensure_future(anext(batches, None))
        try:
            if not attending.done():
                await asyncio.wait([coming, attending], return_when=asyncio.FIRST_COMPLETED)
            if coming.done() and coming.result() is None and self._follow:
                # Nothing is this member's to read; the next generation may have something for it.
                await asyncio.wait([attending])
            if attending.done():
                attending.result()
                return None
            return coming.result()
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    async def _attend(self) -> None:
        """Show the group that this member is alive, and commit, until there is a new generation."""
        for beat in itertools.count(1):
            await asyncio.sleep(self._settings.heartbeat_interval_ms / 1000)
            if self._is_stuck():
                self._notify(
                    f"nobody took what was read for too long: group {self._member.group_id}"
                    " goes on without this member, which joins again when somebody does"
                )
                await self._member.leave("its records are not taken")
                return
            if not await self._member.heartbeat():
                return
            await self._commit()
            if beat % BEATS_PER_LOOK == 0 and await self._member.has_outgrown():
                return

    def _is_stuck(self) -> bool:
        since_ms = self._handed_out_ms
        limit_ms = self._settings.max_poll_interval_ms
        return since_ms is not None and self._clock() - since_ms > limit_ms

    async def _commit(self) -> None:
        offsets = dict(self._printed)
        if not offsets:
            return
        try:
            await self._member.commit(offsets)
        except AnsweredError as error:
            if error.answer is ErrorCode.REBALANCE_IN_PROGRESS:
                return  # The heartbeats will tell.
            if error.answer not in FORGOTTEN:
                raise
            self._notify(
                f"group {self._member.group_id} went on without this member before what it"
                " printed last was committed; that may be printed again"
            )
        for place, offset in offsets.items():
            if self._printed.get(place) == offset:
                del self._printed[place]

    def _tell_assignment(self, places: Sequence[TopicPartition]) -> None:
        topics = "; ".join(
            f"{name} {','.join(map(str, indexes))}" for name, indexes in by_topic(places)
        )
        self._notify(
            f"group {self._member.group_id}, generation {self._member.generation}:"
            f" {topics or 'nothing to read'}"
        )
