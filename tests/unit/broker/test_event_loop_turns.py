"""No turn of the event loop takes long, with many partitions and many batches.

The limit is generous, because the machines of tests are slow; what is quadratic exceeds it by far.
"""

import asyncio

import pytest

from doubles.turn_timer import TurnTimer, measured_turns
from doubles.virtual_time import clock_ms
from kafscale.protocol.messages.fetch import FETCH, FetchRequest, PartitionToFetch, TopicToFetch
from kafscale.records import BatchView
from kafscale.storage.segments.roll_scheduler import RollLimits
from kafscale.storage.wal.buffer import SealPolicy
from unit.broker.in_memory_broker import Stores, running_broker
from unit.storage.engines import memory_store, open_engine, simulate, to_open, values_batch

TURN_SECONDS_MAX = 0.05
PARTITIONS = 1_000
FETCHES = 10
BATCHES_PER_PARTITION = 100
BATCH = bytes(values_batch([b"x" * 30]).buffer)
UNLIMITED = 1 << 40


@pytest.fixture
def turns():
    with measured_turns() as timer:
        yield timer


def check(turns: TurnTimer) -> None:
    assert turns.longest_seconds < TURN_SECONDS_MAX, turns.longest


def test_wal_object_for_which_many_fetches_wait(turns):
    def fetch_all(topic_id):
        wanted = [
            PartitionToFetch(index=number, offset=0, max_bytes=1 << 20)
            for number in range(PARTITIONS)
        ]
        return FetchRequest(
            max_wait_ms=60_000,
            min_bytes=PARTITIONS * len(BATCH),
            max_bytes=1 << 26,
            session_epoch=-1,
            topics=[TopicToFetch(topic_id=topic_id, partitions=wanted)],
        )

    async def scenario():
        async with running_broker(Stores()) as broker:
            topic = await broker.topic("orders", PARTITIONS)
            fetches = []
            for _ in range(FETCHES):
                fetches.append(asyncio.create_task(broker.ask(FETCH, fetch_all(topic.id))))
                await asyncio.sleep(0)
            for number in range(PARTITIONS):
                broker.log("orders", number).append(BatchView(bytearray(BATCH)), clock_ms())
                if number % 100 == 0:
                    await asyncio.sleep(0)
            turns.reset()
            await broker.services.storage.wal.flush()
            await asyncio.gather(*fetches)
        check(turns)

    simulate(scenario)


def test_wal_object_of_many_batches(turns):
    count = PARTITIONS * BATCHES_PER_PARTITION

    async def scenario():
        engine = await open_engine(
            memory_store(),
            partitions=[
                to_open(number, is_new=True, fully_rolled=True) for number in range(PARTITIONS)
            ],
            seal_policy=SealPolicy(
                flush_bytes=UNLIMITED,
                flush_messages=UNLIMITED,
                flush_interval_ms=1 << 30,
                uploads_max=1,
                idle_uploads_max=1,
            ),
            puts_per_second=1e-6,
            buffer_bytes_max=UNLIMITED,
            limits=RollLimits(
                tail_bytes_max=UNLIMITED, wal_bytes_max=UNLIMITED, segment_age_ms_max=UNLIMITED
            ),
        )
        logs = list(engine.logs)
        logs[0].append(BatchView(bytearray(BATCH)), clock_ms())
        await engine.wal.flush()  # It takes the budget, so that the next object has all batches.
        puts = engine.counters.wal_puts
        for number in range(count):
            logs[number % PARTITIONS].append(BatchView(bytearray(BATCH)), clock_ms())
            if number % 500 == 0:
                await asyncio.sleep(0)
        await engine.wal.flush()
        assert engine.counters.wal_puts == puts + 1
        assert sum(log.high_watermark for log in logs) == count + 1
        check(turns)

    # Not in virtual time, which has no threads.
    asyncio.run(scenario())


def test_many_partitions_are_created_and_recovered(turns):
    async def scenario():
        stores = Stores()
        async with running_broker(stores) as broker:
            await broker.topic("orders", PARTITIONS)
            for number in range(PARTITIONS):
                broker.log("orders", number).append(BatchView(bytearray(BATCH)), clock_ms())
                if number % 100 == 0:
                    await asyncio.sleep(0)
            await broker.services.storage.wal.flush()
        async with running_broker(stores) as broker:
            assert broker.log("orders", PARTITIONS - 1).high_watermark == 1
        check(turns)

    simulate(scenario)
