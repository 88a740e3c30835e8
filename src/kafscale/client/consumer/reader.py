"""Reads partitions of one or several topics, following their leaders wherever these go.

The laws: each partition is read in order and no record twice; at any time at most one fetch is on
its way per broker, for all partitions that it leads. What may pass (a broker restarts, a partition
moves) is tried again; where a log begins later than it was read, reading goes on at its new start.
How records are printed is left to whoever takes them.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, NO_LEADER, Client, leaders_of
from kafscale.client.consumer.start_position import Start, offset_of
from kafscale.client.errors import AnsweredError, check, may_pass
from kafscale.client.group_offsets import by_topic, place_in_words
from kafscale.client.retry import RETRIES_COUNT_MAX, pause_seconds
from kafscale.errors import KafscaleError
from kafscale.groups.model import TopicPartition
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

_Fetches = dict[int, "asyncio.Task[FetchResponse]"]


class Chunk(NamedTuple):
    """Some records of a partition, one after the other."""

    place: TopicPartition
    records: list[Record]
    next_offset: int
    """Where reading goes on behind them; what is no record may lie between."""


class Reader:
    """A consumer of topics; which of their partitions are its to read, it is told."""

    def __init__(
        self, client: Client, topics: Sequence[str], *, follow: bool, notify: Callable[[str], None]
    ) -> None:
        """Without `follow`, it ends where the partitions end at the start."""
        self._client = client
        self._names = list(dict.fromkeys(topics))
        self._follow = follow
        self._notify = notify
        self._topics: dict[str, TopicMetadata] = {}
        self._offsets: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._failures = 0

    async def open(
        self,
        start: Start,
        places: Sequence[TopicPartition] | None = None,
        offsets: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Find where to begin in these partitions; in all, if none is named.

        Where `offsets` has one of them, it begins there, and everywhere else at `start`.
        """
        await self._look_up_topics()
        existing = [
            (name, index)
            for name, topic in self._topics.items()
            for index in sorted(leaders_of(topic))
        ]
        for name, index in places or ():
            if (name, index) not in existing:
                last = max(leaders_of(self._topics[name]))
                raise KafscaleError(f"topic {name} has no partition {index}, only 0 to {last}")
        chosen = by_topic(existing if places is None else set(places))
        await asyncio.gather(*(self._begin(start, name, indexes) for name, indexes in chosen))
        self._offsets.update(offsets or {})

    async def batches(self) -> AsyncGenerator[Chunk, None]:
        """The records of the partitions, batch after batch, as they come."""
        fetches: _Fetches = {}
        try:
            while True:
                self._drop_finished()
                if not self._offsets:
                    return
                self._begin_fetches(fetches)
                failed: KafscaleError | None = None
                async for place, fetched in self._arrived(fetches):
                    if isinstance(fetched, KafscaleError):
                        failed = fetched
                        continue
                    for chunk in self._chunks(place, fetched):
                        yield chunk
                if failed is None:
                    self._failures = 0
                else:
                    await self._recover(failed)
        finally:
            for fetch in fetches.values():
                fetch.cancel()
            await asyncio.gather(*fetches.values(), return_exceptions=True)

    async def _look_up_topics(self) -> None:
        self._topics = {name: await self._client.topic(name) for name in self._names}

    async def _begin(self, start: Start, name: str, indexes: Sequence[int]) -> None:
        """Find where to begin, and where the end is, in these partitions of a topic."""
        topic = self._topics[name]
        firsts, ends = await asyncio.gather(
            self._client.offsets(topic, dict.fromkeys(indexes, EARLIEST_TIME)),
            self._client.offsets(topic, dict.fromkeys(indexes, LATEST_TIME)),
        )
        at_times: dict[int, int] = {}
        if start.time_ms is not None:
            at_times = await self._client.offsets(topic, dict.fromkeys(indexes, start.time_ms))
        for index in indexes:
            at_time = at_times.get(index, -1)
            self._ends[name, index] = ends[index]
            self._offsets[name, index] = offset_of(
                start, firsts[index], ends[index], at_time if at_time >= 0 else None
            )

    def _drop_finished(self) -> None:
        if not self._follow:
            for place in [p for p, offset in self._offsets.items() if offset >= self._ends[p]]:
                del self._offsets[place]

    def _begin_fetches(self, fetches: _Fetches) -> None:
        leaders = {name: leaders_of(topic) for name, topic in self._topics.items()}
        led: dict[int, list[TopicPartition]] = {}
        for name, index in self._offsets:
            led.setdefault(leaders[name].get(index, NO_LEADER), []).append((name, index))
        for leader_id, places in led.items():
            if leader_id != NO_LEADER and leader_id not in fetches:
                fetches[leader_id] = asyncio.ensure_future(self._fetch(leader_id, places))

    async def _fetch(self, leader_id: int, places: Sequence[TopicPartition]) -> FetchResponse:
        connection = await self._client.broker(leader_id)
        topics = [
            TopicToFetch(
                name=name,
                topic_id=self._topics[name].topic_id,
                partitions=[
                    PartitionToFetch(
                        index=index,
                        offset=self._offsets[name, index],
                        max_bytes=PARTITION_BYTES_MAX,
                    )
                    for index in indexes
                ],
            )
            for name, indexes in by_topic(places)
        ]
        request = FetchRequest(
            max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=FETCH_BYTES_MAX, topics=topics
        )
        return await connection.ask(FETCH, request, wait_seconds=WAIT_MS / 1000)

    async def _arrived(
        self, fetches: _Fetches
    ) -> AsyncIterator[tuple[TopicPartition, FetchedPartition | KafscaleError]]:
        """Wait for an answer: its partitions, each with records or what is wrong with it."""
        everywhere = ("", -1)
        if not fetches:
            subject = f"topic {', '.join(self._names)}"
            yield everywhere, AnsweredError(subject, ErrorCode.LEADER_NOT_AVAILABLE)
            return
        await asyncio.wait(fetches.values(), return_when=asyncio.FIRST_COMPLETED)
        for leader_id in [each for each, fetch in fetches.items() if fetch.done()]:
            try:
                response = fetches.pop(leader_id).result()
                check(f"broker {leader_id}", response.error_code)
            except KafscaleError as error:
                yield everywhere, error
                continue
            for place, fetched in self._by_place(response):
                try:
                    if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        await self._move_into_range(place)
                        continue
                    check(place_in_words(place), fetched.error_code)
                except KafscaleError as error:
                    yield place, error
                else:
                    yield place, fetched

    def _by_place(
        self, response: FetchResponse
    ) -> Iterator[tuple[TopicPartition, FetchedPartition]]:
        """The partitions of an answer; from v13 on it names topics by their ids."""
        names = {topic.topic_id: name for name, topic in self._topics.items()}
        for topic in response.topics:
            name = topic.name or names.get(topic.topic_id, "")
            for fetched in topic.partitions:
                # What a broker that led a partition before answers late may be out of all use.
                if (name, fetched.index) in self._offsets:
                    yield (name, fetched.index), fetched

    def _chunks(self, place: TopicPartition, fetched: FetchedPartition) -> Iterator[Chunk]:
        """The records of an answer that were not read yet, and the offset moved on behind them."""
        for piece in fetched.records or ():
            for batch in split(piece, partial_ok=True):
                batch.verify_checksum()
                wanted = self._offsets[place]
                end = batch.next_offset
                if not self._follow:
                    end = min(end, self._ends[place])
                self._offsets[place] = max(wanted, batch.next_offset)
                records = () if batch.is_control else iterate(batch)
                unread = [each for each in records if wanted <= each.offset < end]
                yield Chunk(place, unread, max(wanted, end))

    async def _move_into_range(self, place: TopicPartition) -> None:
        """Go on where the log begins now: what lay before is gone."""
        topic, index = self._topics[place[0]], place[1]
        (first,) = (await self._client.offsets(topic, {index: EARLIEST_TIME})).values()
        (end,) = (await self._client.offsets(topic, {index: LATEST_TIME})).values()
        offset = self._offsets[place]
        self._offsets[place] = min(max(offset, first), end)
        self._notify(
            f"{place_in_words(place)} no longer holds offset {offset};"
            f" going on at {self._offsets[place]}"
        )

    async def _recover(self, error: KafscaleError) -> None:
        """Wait a while and look for the leaders again, or give up."""
        self._failures += 1
        if not may_pass(error) or self._failures > RETRIES_COUNT_MAX:
            raise error
        if self._failures == 1:
            self._notify(f"{error}; trying again")
        await asyncio.sleep(pause_seconds(self._failures))
        try:
            await self._look_up_topics()
        except KafscaleError as again:
            if not may_pass(again):
                raise
