"""Fetch, ListOffsets and DescribeProducers of a partition with transactions."""

import asyncio

import pytest

from doubles import virtual_time
from kafscale.broker.handlers.list_offsets import LATEST, MAX_TIMESTAMP
from kafscale.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    TopicToDescribe,
)
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsRequest,
    PartitionToList,
    TopicToList,
)
from kafscale.records import split
from kafscale.records.control import ControlType
from kafscale.records.message_set import read
from kafscale.storage.segments.segment_writer import RollReason
from unit.broker.in_memory_broker import InMemoryBroker, run_with_broker
from unit.storage.engines import values_batch

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT
UNCOMMITTED, COMMITTED = 0, 1


class Partition:
    """Partition 0 of the topic `orders`."""

    def __init__(self, broker: InMemoryBroker) -> None:
        self.broker = broker
        self.log = broker.log("orders")
        self.topic_id = self.log.topic_id
        self.sequences: dict[int, int] = {}

    async def send(self, producer_id: int, *, timestamp_ms: int = 1000) -> None:
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + 1
        batch = values_batch(
            [b"value"],
            transactional=True,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            timestamp_ms=timestamp_ms,
        )
        guard = self.log.start_verification(producer_id, 0, sequence, adds_partition=False)
        self.log.append(batch, virtual_time.clock_ms(), guard=guard)
        await self.broker.services.storage.wal.flush()

    async def end(self, producer_id: int, control_type: ControlType) -> None:
        now_ms = virtual_time.clock_ms()
        self.log.append_end_marker(producer_id, 0, control_type, 3, now_ms)
        await self.broker.services.storage.wal.flush()

    async def roll(self) -> None:
        await self.broker.services.storage.roll_scheduler.roll(self.log, RollReason.EXPLICIT)
        while self.log.tail.evict():
            pass

    async def fetch(
        self, offset: int, isolation: int, *, version: int = FETCH.version_max, wait_ms: int = 0
    ):
        wanted = PartitionToFetch(index=0, offset=offset, max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[TopicToFetch(name="orders", topic_id=self.topic_id, partitions=[wanted])],
        )
        response = await self.broker.ask(FETCH, request, version)
        [result] = response.topics[0].partitions
        assert result.error_code == 0
        return result

    async def list_offset(self, timestamp_ms: int, isolation: int) -> int:
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[TopicToList("orders", [PartitionToList(timestamp_ms=timestamp_ms)])],
        )
        response = await self.broker.ask(LIST_OFFSETS, request)
        return response.topics[0].partitions[0].offset


def offsets(result) -> list[int]:
    return [each.base_offset for each in split(b"".join(result.records))]


def aborted(result) -> list[tuple[int, int]] | None:
    found = result.aborted_transactions
    return None if found is None else [(each.producer_id, each.first_offset) for each in found]


async def with_history(broker: InMemoryBroker) -> Partition:
    """0: committed by 1. 1-2: aborted by 2. 5: open by 3. 6: aborted by 2."""
    await broker.topic("orders")
    partition = Partition(broker)
    await partition.send(1)
    await partition.send(2)
    await partition.send(2)
    await partition.end(1, COMMIT)
    await partition.end(2, ABORT)
    await partition.send(3, timestamp_ms=5000)
    await partition.send(2)
    await partition.end(2, ABORT)
    return partition


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("version", range(4, FETCH.version_max + 1))
def test_committed_readers_get_what_has_ended(version, rolled):
    async def body(broker):
        partition = await with_history(broker)
        if rolled:
            await partition.roll()
        for offset in range(5):
            result = await partition.fetch(offset, COMMITTED, version=version)
            assert offsets(result) == list(range(offset, 5))
            assert (result.last_stable_offset, result.high_watermark) == (5, 8)
            assert aborted(result) == [(2, 1)]
        for offset in range(5, 8):
            result = await partition.fetch(offset, COMMITTED, version=version)
            assert (offsets(result), aborted(result)) == ([], [])
        for offset in range(8):
            result = await partition.fetch(offset, UNCOMMITTED, version=version)
            assert offsets(result) == list(range(offset, 8))
            assert (result.last_stable_offset, aborted(result)) == (5, None)
        await partition.end(3, COMMIT)
        result = await partition.fetch(0, COMMITTED, version=version)
        assert offsets(result) == list(range(9))
        assert result.last_stable_offset == 9
        assert aborted(result) == [(2, 1), (2, 6)]

    run_with_broker(body)


def test_waiting_committed_reader_wakes_up_when_the_transaction_ends():
    async def body(broker):
        partition = await with_history(broker)
        waiting = asyncio.create_task(partition.fetch(5, COMMITTED, wait_ms=5_000))
        await asyncio.sleep(1)
        await partition.send(4)
        await asyncio.sleep(1)
        assert not waiting.done()
        await partition.end(3, ABORT)
        async with asyncio.timeout(0.1):
            result = await waiting
        assert offsets(result) == [5, 6, 7]
        assert aborted(result) == [(2, 6), (3, 5)]

    run_with_broker(body)


def test_waiting_uncommitted_reader_gets_records_of_open_transactions():
    async def body(broker):
        partition = await with_history(broker)
        waiting = asyncio.create_task(partition.fetch(8, UNCOMMITTED, wait_ms=5_000))
        await asyncio.sleep(1)
        await partition.send(3)
        async with asyncio.timeout(0.1):
            assert offsets(await waiting) == [8]

    run_with_broker(body)


def test_transaction_that_begins_during_a_cold_read_is_not_returned():
    async def body(broker):
        await broker.topic("orders")
        partition = Partition(broker)
        await partition.send(1)
        await partition.end(1, COMMIT)
        await partition.roll()
        reader = broker.services.storage.reader
        read_blocks = reader._blocks.blocks

        async def delayed(*arguments):
            await partition.send(2)
            return await read_blocks(*arguments)

        reader._blocks.blocks = delayed
        assert offsets(await partition.fetch(0, COMMITTED)) == [0, 1]

    run_with_broker(body)


@pytest.mark.parametrize("version", range(4))
def test_message_sets_have_no_control_records(version):
    async def body(broker):
        partition = await with_history(broker)
        result = await partition.fetch(0, UNCOMMITTED, version=version)
        found = [message.record.offset for message in read(b"".join(result.records))]
        assert found == [0, 1, 2, 5, 6]
        started = asyncio.get_running_loop().time()
        result = await partition.fetch(7, UNCOMMITTED, version=version, wait_ms=5_000)
        assert b"".join(result.records) == b""
        assert asyncio.get_running_loop().time() == started, "it does not wait with what it has"

    run_with_broker(body)


def test_offsets_for_committed_readers_end_at_the_last_stable_one():
    async def body(broker):
        partition = await with_history(broker)
        assert await partition.list_offset(LATEST, UNCOMMITTED) == 8
        assert await partition.list_offset(LATEST, COMMITTED) == 5
        assert await partition.list_offset(1000, COMMITTED) == 0
        assert await partition.list_offset(5000, UNCOMMITTED) == 3, "a marker"
        later = virtual_time.clock_ms() + 1
        for isolation in (UNCOMMITTED, COMMITTED):
            assert await partition.list_offset(later, isolation) == -1
        assert await partition.list_offset(MAX_TIMESTAMP, UNCOMMITTED) == 3
        await asyncio.sleep(1)
        await partition.end(2, ABORT)
        assert await partition.list_offset(MAX_TIMESTAMP, UNCOMMITTED) == 8
        assert await partition.list_offset(MAX_TIMESTAMP, COMMITTED) == -1

    run_with_broker(body)


def test_producers_are_described_with_their_transactions():
    async def body(broker):
        partition = await with_history(broker)
        request = DescribeProducersRequest([TopicToDescribe("orders", [0])])
        response = await broker.ask(DESCRIBE_PRODUCERS, request)
        [result] = response.topics[0].partitions
        assert {
            each.producer_id: (
                each.last_sequence,
                each.coordinator_epoch,
                each.transaction_start_offset,
            )
            for each in result.active_producers
        } == {1: (0, 3, -1), 2: (2, 3, -1), 3: (0, -1, 5)}
        assert partition.log.transactions.oldest_started_ms is not None

    run_with_broker(body)
