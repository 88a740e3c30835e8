"""A probe: checks which partitions accept and return a record, and from which leader.

    async with Probe(cluster.addresses, topic) as probe:
        await probe.fill(range(100))
        results = await probe.check(range(100), through=2)

It sends one request per leader, with all partitions of that leader; a given broker returns the
leaders. Invariant: a record that was acknowledged with acks=all stays readable at its offset; the
probe asserts this.
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
RESPONSE_S_MAX = 10
FETCH_VERSION = 11
METADATA_VERSION = 12
PRODUCE_VERSION = 9
BATCH_BYTES_MAX = 64 * 1024
RECORD = b"x" * 100


class ProbeResult(NamedTuple):
    """A partition accepted and returned a record."""

    leader_id: int
    seconds: float
    """When, by the monotonic clock."""


class ProbeConnection(BrokerConnection):
    """A connection that knows whether it is open."""

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
        self._durable_ends: dict[int, int] = {}
        """The end offset of the records acknowledged with acks=all, by partition."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker_id in list(self._connections):
            self._close(broker_id)

    async def fill(self, partitions: Iterable[int]) -> None:
        """Produce a record to each partition, with retries."""
        through = next(iter(self._addresses))
        remaining = set(partitions)
        while remaining:
            remaining -= (await self.check(remaining, through=through)).keys()
            await asyncio.sleep(PAUSE_S)

    async def check(
        self,
        partitions: Collection[int],
        *,
        through: int,
        excluding: int | None = None,
        acks: int = ALL,
    ) -> dict[int, ProbeResult]:
        """Check partitions whose leader is known to broker `through` and is not `excluding`."""
        led: defaultdict[int, list[int]] = defaultdict(list)
        leaders = await self.leaders(through)
        for partition in partitions:
            if leaders.get(partition, -1) not in (-1, excluding):
                led[leaders[partition]].append(partition)
        results = await asyncio.gather(*(self._check(*each, acks) for each in led.items()))
        return {partition: response for each in results for partition, response in each.items()}

    async def leaders(self, through: int) -> dict[int, int]:
        """The leader of each partition."""
        described = await self._describe(through)
        return {each.index: each.leader_id for each in described.topics[0].partitions}

    async def controller_id(self, through: int) -> int:
        return (await self._describe(through)).controller_id

    async def _describe(self, through: int) -> MetadataResponse:
        connection = await self._connection(through)
        request = MetadataRequest([TopicToDescribe(name=self._topic)])
        async with asyncio.timeout(RESPONSE_S_MAX):
            return await connection.ask(METADATA, METADATA_VERSION, request)

    # --- one broker ---------------------------------------------------------------------------

    async def _check(
        self, leader_id: int, partitions: Collection[int], acks: int
    ) -> dict[int, ProbeResult]:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(RESPONSE_S_MAX):
                connection = await self._connection(leader_id)
                accepted = await self._produce(connection, partitions, acks)
                returned = await self._fetch(connection, accepted) if accepted else []
            now = time.perf_counter()
            return {partition: ProbeResult(leader_id, now) for partition in returned}
        self._close(leader_id)
        return {}

    async def _produce(
        self, connection: BrokerConnection, partitions: Iterable[int], acks: int
    ) -> list[int]:
        """Produce one record to each partition; return those that accepted it."""
        batch = memoryview(batch_of([RECORD]))
        batches = [PartitionToProduce(partition, batch) for partition in partitions]
        request = ProduceRequest(None, acks, RESPONSE_S_MAX * 1000)
        request.topics = [TopicToProduce(self._topic, partitions=batches)]
        response = await connection.ask(PRODUCE, PRODUCE_VERSION, request)
        return [
            each.index for each in response.topics[0].partitions if self._is_accepted(each, acks)
        ]

    def _is_accepted(self, produced: ProducedPartition, acks: int) -> bool:
        if produced.error_code:
            return False
        durable_end = self._durable_ends.get(produced.index, 0)
        assert produced.base_offset >= durable_end, (
            f"an offset below {durable_end} was assigned again: {produced}"
        )
        if acks == ALL:
            self._durable_ends[produced.index] = produced.base_offset + 1
        return True

    async def _fetch(self, connection: BrokerConnection, partitions: Iterable[int]) -> list[int]:
        """Fetch the newest durable record; return the partitions that have it."""
        requested = [
            PartitionToFetch(each, offset=self._durable_ends[each] - 1, max_bytes=BATCH_BYTES_MAX)
            for each in partitions
        ]
        request = FetchRequest(topics=[TopicToFetch(self._topic, partitions=requested)])
        response = await connection.ask(FETCH, FETCH_VERSION, request)
        return [each.index for each in response.topics[0].partitions if self._is_returned(each)]

    def _is_returned(self, fetched: FetchedPartition) -> bool:
        if fetched.error_code:
            return False
        durable_end = self._durable_ends[fetched.index]
        assert fetched.high_watermark >= durable_end, (
            f"a record below {durable_end} is lost: {fetched}"
        )
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
