"""Reads and writes one partition at its current leader.

Requests are retried, at the new leader if it changed, while the error is retriable. Batches are
passed on as encoded bytes, so nothing here costs time per record.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeVar

from kafscale.client.client import EARLIEST_TIME, LATEST_TIME, NO_LEADER, Client, leaders_of
from kafscale.client.connection import Connection
from kafscale.client.errors import BrokerResponseError, Pause, check, is_retriable, retry
from kafscale.client.isolation import IsolationLevel
from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchRequest,
    PartitionToFetch,
    TopicToFetch,
)
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.records import BatchView, split

FETCH_BYTES_MAX: Final = 4 * 1024 * 1024
WAIT_MS: Final = 500
TIMEOUT_MS: Final = 30_000
ACKS_ALL: Final = -1

Outcome = int | KafscaleError
"""The base offset of a batch in the log, or the error."""

_Result = TypeVar("_Result")


class Partition:
    """A partition and its leader."""

    def __init__(
        self,
        client: Client,
        topic: TopicMetadata,
        index: int,
        *,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._client = client
        self._topic = topic
        self._name = topic.name or ""
        self._index = index
        self._isolation = isolation
        self._pause = pause

    def __str__(self) -> str:
        return f"topic {self._name}, partition {self._index}"

    # --- reading ------------------------------------------------------------------------------

    async def bounds(self) -> tuple[int, int]:
        """The start and end offset of the log."""

        async def once() -> tuple[int, int]:
            starts = await self._client.offsets(self._topic, {self._index: EARLIEST_TIME})
            ends = await self._client.offsets(self._topic, {self._index: LATEST_TIME})
            return starts[self._index], ends[self._index]

        return await self._with_retries(once)

    async def fetch(self, offset: int, *, bytes_max: int = FETCH_BYTES_MAX) -> list[BatchView]:
        """Fetch batches from an offset on; none if there are none yet."""
        fetched = await self._fetch(offset, bytes_max)
        return batches_of(fetched, offset)

    async def _fetch(self, offset: int, bytes_max: int) -> FetchedPartition:
        async def once() -> FetchedPartition:
            partition = PartitionToFetch(index=self._index, offset=offset, max_bytes=bytes_max)
            topic = TopicToFetch(
                name=self._name, topic_id=self._topic.topic_id, partitions=[partition]
            )
            request = FetchRequest(
                max_wait_ms=WAIT_MS,
                min_bytes=1,
                max_bytes=bytes_max,
                isolation_level=self._isolation.code,
                topics=[topic],
            )
            connection = await self._leader()
            response = await connection.ask(FETCH, request, wait_seconds=WAIT_MS / 1000)
            check(str(self), response.error_code)
            fetched = response.topics[0].partitions[0]
            check(str(self), fetched.error_code)
            return fetched

        return await self._with_retries(once)

    async def fetch_range(self, offset: int, end_offset: int) -> AsyncIterator[BatchView]:
        """Fetch the batches of a range of offsets, which must be within the log."""
        while offset < end_offset:
            batches = await self.fetch(offset)
            for batch in batches:
                if batch.base_offset >= end_offset:
                    return
                yield batch
                offset = batch.next_offset

    async def last_batch(self) -> BatchView | None:
        """Fetch the last batch; None if the log is empty."""
        start, end = await self.bounds()
        last = None
        if start < end:
            async for batch in self.fetch_range(end - 1, end):
                last = batch
        return last

    # --- writing ------------------------------------------------------------------------------

    async def produce(self, batches: Sequence[bytearray]) -> list[Outcome]:
        """Send batches in order, without waiting for responses in between; return all outcomes."""
        try:
            connection = await self._leader()
        except KafscaleError as error:
            return [error for _ in batches]
        # Each request is written before its task first waits, so they are sent in order.
        outcomes = await asyncio.gather(*(self._send(connection, batch) for batch in batches))
        return list(outcomes)

    async def refresh_metadata(self) -> None:
        """Fetch the current leader of the partition."""
        self._topic = await self._client.topic(self._name)

    async def _send(self, connection: Connection, batch: bytearray) -> Outcome:
        topic = TopicToProduce(
            name=self._name,
            topic_id=self._topic.topic_id,
            partitions=[PartitionToProduce(self._index, memoryview(batch))],
        )
        request = ProduceRequest(acks=ACKS_ALL, timeout_ms=TIMEOUT_MS, topics=[topic])
        try:
            response = await connection.ask(PRODUCE, request, wait_seconds=TIMEOUT_MS / 1000)
            produced = response.topics[0].partitions[0]
            check(str(self), produced.error_code, produced.error_message)
        except KafscaleError as error:
            return error
        return produced.base_offset

    # --- requests -----------------------------------------------------------------------------

    async def _leader(self) -> Connection:
        leader_id = leaders_of(self._topic).get(self._index, NO_LEADER)
        if leader_id == NO_LEADER:
            raise BrokerResponseError(str(self), ErrorCode.LEADER_NOT_AVAILABLE)
        return await self._client.broker(leader_id)

    async def _with_retries(self, task: Callable[[], Awaitable[_Result]]) -> _Result:
        async def once() -> _Result:
            try:
                return await task()
            except KafscaleError as error:
                if is_retriable(error):
                    await self.refresh_metadata()
                raise

        return await retry(once, pause=self._pause)


def batches_of(fetched: FetchedPartition, offset: int) -> list[BatchView]:
    """The batches of a response that reach beyond an offset, verified."""
    batches = [batch for part in fetched.records or () for batch in split(part, partial_ok=True)]
    for batch in batches:
        batch.verify_checksum()
    return [batch for batch in batches if batch.next_offset > offset]
