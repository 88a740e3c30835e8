"""Reads the partitions of a topic side by side, following their leaders wherever these go.

The laws: each partition is read in order and no record twice; at any time at most one fetch is on
its way per broker, for all partitions that it leads. What may pass (a broker restarts, a partition
moves) is tried again; where a log begins later than it was read, reading goes on at its new start.
How records are printed is left to whoever takes them.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from typing import Final

from kafscale.cli.client import (
    EARLIEST_TIME,
    LATEST_TIME,
    NO_LEADER,
    Client,
    leaders_of,
)
from kafscale.cli.client_errors import AnsweredError, check, may_pass
from kafscale.cli.consume_start import Start, offset_of
from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    PartitionToFetch,
    TopicToFetch,
)
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.records import Record, iterate, split

FETCH_BYTES_MAX: Final = 50 * 1024 * 1024
PARTITION_BYTES_MAX: Final = 1024 * 1024
WAIT_MS: Final = 500
RETRIES_COUNT_MAX: Final = 20
RETRY_SECONDS_FIRST: Final = 0.1
RETRY_SECONDS_MAX: Final = 2.0

_Fetches = dict[int, "asyncio.Task[FetchResponse]"]


class Reader:
    """A consumer of one topic, without a group."""

    def __init__(
        self, client: Client, topic: str, *, follow: bool, notify: Callable[[str], None]
    ) -> None:
        """Without `follow`, it ends where the partitions end at the start."""
        self._client = client
        self._name = topic
        self._follow = follow
        self._notify = notify
        self._topic: TopicMetadata
        self._offsets: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._failures = 0

    async def open(self, start: Start, partitions: Sequence[int]) -> None:
        """Find where to begin in these partitions; in all, if none is named."""
        self._topic = await self._client.topic(self._name)
        indexes = sorted(leaders_of(self._topic))
        for partition in partitions:
            if partition not in indexes:
                raise KafscaleError(
                    f"topic {self._name} has no partition {partition}, only 0 to {indexes[-1]}"
                )
        chosen = sorted(set(partitions)) or indexes
        firsts, self._ends = await asyncio.gather(
            self._client.offsets(self._topic, dict.fromkeys(chosen, EARLIEST_TIME)),
            self._client.offsets(self._topic, dict.fromkeys(chosen, LATEST_TIME)),
        )
        at_times: dict[int, int] = {}
        if start.time_ms is not None:
            asked = dict.fromkeys(chosen, start.time_ms)
            at_times = await self._client.offsets(self._topic, asked)
        for index in chosen:
            first, end = firsts[index], self._ends[index]
            at_time = at_times.get(index, -1)
            self._offsets[index] = offset_of(start, first, end, at_time if at_time >= 0 else None)

    async def batches(self) -> AsyncGenerator[tuple[int, list[Record]], None]:
        """The records of a partition, batch after batch, as they come."""
        fetches: _Fetches = {}
        try:
            while True:
                self._drop_finished()
                if not self._offsets:
                    return
                self._begin_fetches(fetches)
                failed: KafscaleError | None = None
                async for fetched in self._arrived(fetches):
                    if isinstance(fetched, KafscaleError):
                        failed = fetched
                        continue
                    for records in self._records(fetched):
                        yield fetched.index, records
                if failed is None:
                    self._failures = 0
                else:
                    await self._recover(failed)
        finally:
            for fetch in fetches.values():
                fetch.cancel()
            await asyncio.gather(*fetches.values(), return_exceptions=True)

    def _drop_finished(self) -> None:
        if not self._follow:
            for index in [i for i, offset in self._offsets.items() if offset >= self._ends[i]]:
                del self._offsets[index]

    def _begin_fetches(self, fetches: _Fetches) -> None:
        leaders = leaders_of(self._topic)
        for leader_id in {leaders.get(index, NO_LEADER) for index in self._offsets}:
            if leader_id != NO_LEADER and leader_id not in fetches:
                led = [index for index in self._offsets if leaders.get(index) == leader_id]
                fetches[leader_id] = asyncio.ensure_future(self._fetch(leader_id, led))

    async def _fetch(self, leader_id: int, indexes: Sequence[int]) -> FetchResponse:
        connection = await self._client.broker(leader_id)
        topic = TopicToFetch(
            name=self._name,
            topic_id=self._topic.topic_id,
            partitions=[
                PartitionToFetch(
                    index=index, offset=self._offsets[index], max_bytes=PARTITION_BYTES_MAX
                )
                for index in indexes
            ],
        )
        request = FetchRequest(
            max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=FETCH_BYTES_MAX, topics=[topic]
        )
        return await connection.ask(FETCH, request, wait_seconds=WAIT_MS / 1000)

    async def _arrived(self, fetches: _Fetches) -> AsyncIterator[FetchedPartition | KafscaleError]:
        """Wait for an answer: its partitions, each with records or what is wrong with it."""
        if not fetches:
            yield AnsweredError(f"topic {self._name}", ErrorCode.LEADER_NOT_AVAILABLE)
            return
        await asyncio.wait(fetches.values(), return_when=asyncio.FIRST_COMPLETED)
        for leader_id in [each for each, fetch in fetches.items() if fetch.done()]:
            try:
                response = fetches.pop(leader_id).result()
                check(f"topic {self._name}", response.error_code)
            except KafscaleError as error:
                yield error
                continue
            for fetched in (each for topic in response.topics for each in topic.partitions):
                try:
                    if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        await self._move_into_range(fetched.index)
                        continue
                    check(f"topic {self._name}, partition {fetched.index}", fetched.error_code)
                except KafscaleError as error:
                    yield error
                else:
                    yield fetched

    def _records(self, fetched: FetchedPartition) -> Iterator[list[Record]]:
        """The records of an answer that were not read yet, and the offset moved on behind them."""
        index = fetched.index
        # What a broker that led the partition before answers late may be out of all use by now.
        for piece in (fetched.records or ()) if index in self._offsets else ():
            for batch in split(piece, partial_ok=True):
                batch.verify_checksum()
                wanted = self._offsets[index]
                end = batch.next_offset if self._follow else self._ends[index]
                self._offsets[index] = max(wanted, batch.next_offset)
                if not batch.is_control:
                    yield [each for each in iterate(batch) if wanted <= each.offset < end]

    async def _move_into_range(self, index: int) -> None:
        """Go on where the log begins now: what lay before is gone."""
        (first,) = (await self._client.offsets(self._topic, {index: EARLIEST_TIME})).values()
        (end,) = (await self._client.offsets(self._topic, {index: LATEST_TIME})).values()
        offset = self._offsets[index]
        self._offsets[index] = min(max(offset, first), end)
        self._notify(
            f"partition {index} no longer holds offset {offset}; going on at {self._offsets[index]}"
        )

    async def _recover(self, error: KafscaleError) -> None:
        """Wait a while and look for the leaders again, or give up."""
        self._failures += 1
        if not may_pass(error) or self._failures > RETRIES_COUNT_MAX:
            raise error
        if self._failures == 1:
            self._notify(f"{error}; trying again")
        pause_seconds = RETRY_SECONDS_FIRST * 2 ** (self._failures - 1)
        await asyncio.sleep(min(pause_seconds, RETRY_SECONDS_MAX))
        try:
            self._topic = await self._client.topic(self._name)
        except KafscaleError as again:
            if not may_pass(again):
                raise
