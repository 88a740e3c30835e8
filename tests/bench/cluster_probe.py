"""A probe: asks partitions whether they take a record and give one, and who it is that answers.

    async with Probe(cluster.addresses, topic) as probe:
        await probe.fill(range(100), acks=ALL)
        answers = await probe.ask(range(100), through=2)

It asks whoever leads a partition, as a broker tells it that serves, and all partitions of a leader
at once. The law: a record that was acknowledged with acks=all is there ever after, at its offset;
a probe that finds it gone, or its offset given to another, says so at once.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple, Self

from bench.broker_connection import BrokerConnection
from kafscale.protocol.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchRequest,
    PartitionToFetch,
    TopicToFetch,
)
from kafscale.protocol.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataResponse,
    TopicToDescribe,
)
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProducedPartition,
    ProduceRequest,
    TopicToProduce,
)
from services.wire import ALL, batch_of

PAUSE_S = 0.02
ANSWER_S_MAX = 10
FETCH_VERSION = 11
METADATA_VERSION = 12
PRODUCE_VERSION = 9
BATCH_BYTES_MAX = 64 * 1024
RECORD = b"x" * 100


class Answer(NamedTuple):
    """A partition has taken a record and given one."""

    leader_id: int
    seconds: float
    """When, by the steady clock."""


class ProbeConnection(BrokerConnection):
    """A line that knows whether it still leads somewhere."""

    is_open = True

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        super().connection_lost(error)


class Probe:
    """A client that reaches every broker directly."""

    def __init__(self, addresses: Mapping[int, str], topic: str) -> None:
        self._addresses = addresses
        self._topic = topic
        self._connections: dict[int, ProbeConnection] = {}
        self._kept: dict[int, int] = {}
        """The offset behind the last record of each partition that was acknowledged as durable."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker_id in list(self._connections):
            self._close(broker_id)

    async def fill(self, partitions: Iterable[int]) -> None:
        """Put a record in each of them, however long that takes."""
        through = next(iter(self._addresses))
        left = set(partitions)
        while left:
            left -= (await self.ask(left, through=through)).keys()
            await asyncio.sleep(PAUSE_S)

    async def ask(
        self,
        partitions: Collection[int],
        *,
        through: int,
        besides: int | None = None,
        acks: int = ALL,
    ) -> dict[int, Answer]:
        """Those that answer now, led by whom one broker says, but not those led by `besides`."""
        led: defaultdict[int, list[int]] = defaultdict(list)
        leaders = await self.leaders(through)
        for partition in partitions:
            if leaders.get(partition, -1) not in (-1, besides):
                led[leaders[partition]].append(partition)
        found = await asyncio.gather(*(self._ask(*each, acks) for each in led.items()))
        return {partition: response for each in found for partition, response in each.items()}

    async def leaders(self, through: int) -> dict[int, int]:
        """Who leads which partition."""
        described = await self._describe(through)
        return {each.index: each.leader_id for each in described.topics[0].partitions}

    async def controller_id(self, through: int) -> int:
        return (await self._describe(through)).controller_id

    async def _describe(self, through: int) -> MetadataResponse:
        connection = await self._connection(through)
        request = MetadataRequest([TopicToDescribe(name=self._topic)])
        async with asyncio.timeout(ANSWER_S_MAX):
            return await connection.ask(METADATA, METADATA_VERSION, request)

    # --- one broker ---------------------------------------------------------------------------

    async def _ask(
        self, leader_id: int, partitions: Collection[int], acks: int
    ) -> dict[int, Answer]:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_S_MAX):
                connection = await self._connection(leader_id)
                taken = await self._produce(connection, partitions, acks)
                given = await self._fetch(connection, taken) if taken else []
            now = time.perf_counter()
            return {partition: Answer(leader_id, now) for partition in given}
        self._close(leader_id)
        return {}

    async def _produce(
        self, connection: BrokerConnection, partitions: Iterable[int], acks: int
    ) -> list[int]:
        """Those that have taken a record."""
        batch = memoryview(batch_of([RECORD]))
        batches = [PartitionToProduce(partition, batch) for partition in partitions]
        request = ProduceRequest(None, acks, ANSWER_S_MAX * 1000)
        request.topics = [TopicToProduce(self._topic, partitions=batches)]
        response = await connection.ask(PRODUCE, PRODUCE_VERSION, request)
        return [each.index for each in response.topics[0].partitions if self._is_taken(each, acks)]

    def _is_taken(self, produced: ProducedPartition, acks: int) -> bool:
        if produced.error_code:
            return False
        kept = self._kept.get(produced.index, 0)
        assert produced.base_offset >= kept, f"an offset below {kept} is given again: {produced}"
        if acks == ALL:
            self._kept[produced.index] = produced.base_offset + 1
        return True

    async def _fetch(self, connection: BrokerConnection, partitions: Iterable[int]) -> list[int]:
        """Those that give the newest record which must be there."""
        asked = [
            PartitionToFetch(each, offset=self._kept[each] - 1, max_bytes=BATCH_BYTES_MAX)
            for each in partitions
        ]
        request = FetchRequest(topics=[TopicToFetch(self._topic, partitions=asked)])
        response = await connection.ask(FETCH, FETCH_VERSION, request)
        return [each.index for each in response.topics[0].partitions if self._is_given(each)]

    def _is_given(self, fetched: FetchedPartition) -> bool:
        if fetched.error_code:
            return False
        kept = self._kept[fetched.index]
        assert fetched.high_watermark >= kept, f"a record below {kept} is lost: {fetched}"
        return bool(fetched.records)

    async def _connection(self, broker_id: int) -> BrokerConnection:
        connection = self._connections.get(broker_id)
        if connection is None or not connection.is_open:
            connection = self._connections[broker_id] = await ProbeConnection.open(
                self._addresses[broker_id]
            )
        return connection

    def _close(self, broker_id: int) -> None:
        if (connection := self._connections.pop(broker_id, None)) is not None:
            connection.close()
