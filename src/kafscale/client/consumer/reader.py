"""Reads partitions of one or several topics from their leaders.

Invariants:
* Each partition is read in order, and no record twice.
* At most one fetch per broker is in flight, for all partitions that it leads.
* With READ_COMMITTED, no record of an open or aborted transaction is returned.

Retriable errors (a broker restarts, a partition moves) are retried. If retention deletes records
that were not read yet, reading continues at the new log start offset.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kafscale.aio.backoff import Backoff
from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, NO_LEADER, Client, leaders_of
from kafscale.client.consumer.aborted_transactions import AbortedTransactions
from kafscale.client.consumer.start_position import StartPosition, resolve_offset
from kafscale.client.errors import (
    RETRIES_COUNT_MAX,
    RETRY_SECONDS_MAX,
    BrokerResponseError,
    check,
    is_retriable,
)
from kafscale.client.group_offsets import by_topic, format_topic_partition
from kafscale.client.isolation import IsolationLevel
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
from kafscale.text.topic_partition import TopicPartition

FETCH_BYTES_MAX: Final = 50 * 1024 * 1024
PARTITION_BYTES_MAX: Final = 1024 * 1024
WAIT_MS: Final = 500

_Fetches = dict[int, "asyncio.Task[FetchResponse]"]


class Chunk(NamedTuple):
    """Consecutive records of a partition."""

    topic_partition: TopicPartition
    records: list[Record]
    next_offset: int
    """The offset to read next; control records and gaps are skipped."""


class Reader:
    """A consumer of given partitions, without a group."""

    def __init__(
        self,
        client: Client,
        topics: Sequence[str],
        *,
        follow: bool,
        notify: Callable[[str], None],
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> None:
        """Without `follow`, reading stops at the end offsets at the time of `open`."""
        self._client = client
        self._names = list(dict.fromkeys(topics))
        self._follow = follow
        self._notify = notify
        self._isolation = isolation
        self._topics: dict[str, TopicMetadata] = {}
        self._offsets: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._backoff = Backoff(max_seconds=RETRY_SECONDS_MAX)

    async def open(
        self,
        start: StartPosition,
        topic_partitions: Sequence[TopicPartition] | None = None,
        offsets: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Find the offsets to start from, in these partitions or in all.

        A partition starts at its offset in `offsets`, or else at `start`.
        """
        await self._refresh_topics()
        existing = [
            (name, index)
            for name, topic in self._topics.items()
            for index in sorted(leaders_of(topic))
        ]
        for name, index in topic_partitions or ():
            if (name, index) not in existing:
                last = max(leaders_of(self._topics[name]))
                raise KafscaleError(f"topic {name} has no partition {index}, only 0 to {last}")
        selected = by_topic(existing if topic_partitions is None else set(topic_partitions))
        await asyncio.gather(
            *(self._find_offsets(start, name, indexes) for name, indexes in selected)
        )
        self._offsets.update(offsets or {})

    async def batches(self) -> AsyncGenerator[Chunk, None]:
        """Yield the records of the partitions as they arrive."""
        fetches: _Fetches = {}
        try:
            while True:
                self._drop_finished()
                if not self._offsets:
                    return
                self._start_fetches(fetches)
                failed: KafscaleError | None = None
                async for topic_partition, fetched in self._wait_for_responses(fetches):
                    if isinstance(fetched, KafscaleError):
                        failed = fetched
                        continue
                    for chunk in self._chunks(topic_partition, fetched):
                        yield chunk
                if failed is None:
                    self._backoff.reset()
                else:
                    await self._recover(failed)
        finally:
            for fetch in fetches.values():
                fetch.cancel()
            await asyncio.gather(*fetches.values(), return_exceptions=True)

    async def _refresh_topics(self) -> None:
        self._topics = {name: await self._client.topic(name) for name in self._names}

    async def _find_offsets(self, start: StartPosition, name: str, indexes: Sequence[int]) -> None:
        """Set the start and end offsets of these partitions of a topic."""
        topic = self._topics[name]
        firsts, ends = await asyncio.gather(
            self._client.offsets(topic, dict.fromkeys(indexes, EARLIEST_TIME)),
            self._client.offsets(topic, dict.fromkeys(indexes, LATEST_TIME), self._isolation),
        )
        at_times: dict[int, int] = {}
        if start.time_ms is not None:
            at_times = await self._client.offsets(
                topic, dict.fromkeys(indexes, start.time_ms), self._isolation
            )
        for index in indexes:
            at_time = at_times.get(index, -1)
            self._ends[name, index] = ends[index]
            self._offsets[name, index] = resolve_offset(
                start, firsts[index], ends[index], at_time if at_time >= 0 else None
            )

    def _drop_finished(self) -> None:
        if not self._follow:
            for topic_partition in [
                p for p, offset in self._offsets.items() if offset >= self._ends[p]
            ]:
                del self._offsets[topic_partition]

    def _start_fetches(self, fetches: _Fetches) -> None:
        leaders = {name: leaders_of(topic) for name, topic in self._topics.items()}
        by_leader: dict[int, list[TopicPartition]] = {}
        for name, index in self._offsets:
            by_leader.setdefault(leaders[name].get(index, NO_LEADER), []).append((name, index))
        for leader_id, topic_partitions in by_leader.items():
            if leader_id != NO_LEADER and leader_id not in fetches:
                fetches[leader_id] = asyncio.ensure_future(self._fetch(leader_id, topic_partitions))

    async def _fetch(
        self, leader_id: int, topic_partitions: Sequence[TopicPartition]
    ) -> FetchResponse:
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
            for name, indexes in by_topic(topic_partitions)
        ]
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES_MAX,
            isolation_level=self._isolation.code,
            topics=topics,
        )
        return await connection.ask(FETCH, request, wait_seconds=WAIT_MS / 1000)

    async def _wait_for_responses(
        self, fetches: _Fetches
    ) -> AsyncIterator[tuple[TopicPartition, FetchedPartition | KafscaleError]]:
        """Wait for a response; yield its partitions, each with records or an error."""
        all_partitions = ("", -1)
        if not fetches:
            subject = f"topic {', '.join(self._names)}"
            yield all_partitions, BrokerResponseError(subject, ErrorCode.LEADER_NOT_AVAILABLE)
            return
        await asyncio.wait(fetches.values(), return_when=asyncio.FIRST_COMPLETED)
        for leader_id in [each for each, fetch in fetches.items() if fetch.done()]:
            try:
                response = fetches.pop(leader_id).result()
                check(f"broker {leader_id}", response.error_code)
            except KafscaleError as error:
                yield all_partitions, error
                continue
            for topic_partition, fetched in self._by_topic_partition(response):
                try:
                    if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        await self._move_into_range(topic_partition)
                        continue
                    check(format_topic_partition(topic_partition), fetched.error_code)
                except KafscaleError as error:
                    yield topic_partition, error
                else:
                    yield topic_partition, fetched

    def _by_topic_partition(
        self, response: FetchResponse
    ) -> Iterator[tuple[TopicPartition, FetchedPartition]]:
        """The partitions of a response; since v13, it has topic ids instead of names."""
        names = {topic.topic_id: name for name, topic in self._topics.items()}
        for topic in response.topics:
            name = topic.name or names.get(topic.topic_id, "")
            for fetched in topic.partitions:
                # A late response of a former leader may have partitions that are no longer read.
                if (name, fetched.index) in self._offsets:
                    yield (name, fetched.index), fetched

    def _chunks(
        self, topic_partition: TopicPartition, fetched: FetchedPartition
    ) -> Iterator[Chunk]:
        """Yield the records that were not read yet, and advance the offset."""
        aborted = AbortedTransactions(fetched.aborted_transactions)
        for part in fetched.records or ():
            for batch in split(part, partial_ok=True):
                batch.verify_checksum()
                next_offset = self._offsets[topic_partition]
                end = batch.next_offset
                if not self._follow:
                    end = min(end, self._ends[topic_partition])
                self._offsets[topic_partition] = max(next_offset, batch.next_offset)
                is_hidden = aborted.contains(batch) or batch.is_control
                records = () if is_hidden else iterate(batch)
                unread = [each for each in records if next_offset <= each.offset < end]
                yield Chunk(topic_partition, unread, max(next_offset, end))

    async def _move_into_range(self, topic_partition: TopicPartition) -> None:
        """Continue at the log start offset: earlier records were deleted."""
        topic, index = self._topics[topic_partition[0]], topic_partition[1]
        (first,) = (await self._client.offsets(topic, {index: EARLIEST_TIME})).values()
        ends = await self._client.offsets(topic, {index: LATEST_TIME}, self._isolation)
        (end,) = ends.values()
        offset = self._offsets[topic_partition]
        self._offsets[topic_partition] = min(max(offset, first), end)
        self._notify(
            f"{format_topic_partition(topic_partition)} no longer has offset {offset};"
            f" continuing at offset {self._offsets[topic_partition]}"
        )

    async def _recover(self, error: KafscaleError) -> None:
        """Wait and refresh the leaders, or raise the error if it is not retriable."""
        if not is_retriable(error) or self._backoff.tries == RETRIES_COUNT_MAX:
            raise error
        if not self._backoff.tries:
            self._notify(f"{error}; retrying")
        await asyncio.sleep(self._backoff.next_seconds())
        try:
            await self._refresh_topics()
        except KafscaleError as again:
            if not is_retriable(again):
                raise
