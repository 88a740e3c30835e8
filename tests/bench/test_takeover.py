"""Taking over what a dead broker left in its WAL: the time, and the longest turn on the event loop.

Batches of one small record are the worst case: the cost is per batch.
"""

import asyncio
import time

import pytest

from doubles.turn_timer import measured_turns
from doubles.virtual_time import clock_ms
from kafscale.records import BatchView
from kafscale.storage.formats import wal_object
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.segments.roll_scheduler import RollLimits
from kafscale.storage.wal.streams import Streams
from unit.storage.engines import (
    BROKER_ID,
    NAMESPACE,
    TOPIC,
    TOPIC_ID,
    start_engine,
    topic,
    values_batch,
)
from unit.storage.sessions import OTHER_ID, key_of

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

MEBIBYTES = 256
OBJECT_BYTES = 4 * 1024 * 1024
PARTITIONS = 20
TURN_MS_MAX = 50


async def left_behind(store: MemoryObjectStore, size_bytes: int) -> int:
    """Write the stream of a dead broker; return the number of batches."""
    streams = Streams(store, NAMESPACE, clock_ms)
    await streams.create(OTHER_ID, 0)
    template = bytes(
        values_batch([b"x" * 100], producer_id=7, producer_epoch=0, base_sequence=0).buffer
    )
    per_range = OBJECT_BYTES // len(template) // PARTITIONS
    objects = size_bytes // OBJECT_BYTES
    for sequence in range(objects):
        base_offset = sequence * per_range
        body = bytearray(template * per_range)
        for number in range(per_range):
            start = number * len(template)
            batch = BatchView(memoryview(body)[start : start + len(template)])
            batch.stamp(base_offset + number, 0)
        data = [
            wal_object.PartitionData(
                TOPIC_ID, TOPIC, partition, body, base_offset, base_offset + per_range - 1, 0
            )
            for partition in range(PARTITIONS)
        ]
        header = wal_object.Header(OTHER_ID, 0, sequence + 1, clock_ms())
        key = key_of(0, sequence + 1, OTHER_ID)
        await store.put(key, wal_object.encode(header, data))
    await streams.fence(OTHER_ID, 0)
    return objects * per_range * PARTITIONS


def test_takeover_of_small_batches(comparisons, scaled):
    comparison = comparisons.new("take over a WAL of single-record batches, in memory")

    async def scenario() -> dict[str, float]:
        store = MemoryObjectStore(clock_ms)
        count = await left_behind(store, scaled(MEBIBYTES) * 1024 * 1024)
        limits = RollLimits(tail_bytes_max=1 << 31, wal_bytes_max=1 << 40, segment_age_ms_max=10**9)
        engine = await start_engine(store, broker_id=BROKER_ID, limits=limits)
        with measured_turns() as turns:
            started, processor = time.perf_counter(), time.process_time()
            await engine.open(topic(PARTITIONS))
            seconds = time.perf_counter() - started
            processor = time.process_time() - processor
        assert sum(log.high_watermark for log in engine.logs) == count
        return {
            "batches": count,
            "seconds": seconds,
            "CPU seconds": processor,
            "longest turn, ms": turns.longest_seconds * 1000,
        }

    figures = asyncio.run(scenario())
    comparison.add("Kafscale", figures)
    assert figures["longest turn, ms"] < TURN_MS_MAX
