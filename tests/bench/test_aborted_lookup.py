"""The time to find aborted transactions, which must not depend on how many a partition has."""

import asyncio
import time
from itertools import pairwise

import pytest

from doubles.virtual_time import clock_ms
from kafscale.records.control import ControlType
from kafscale.storage.engine import StorageEngine
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.segments.roll_scheduler import RollLimits
from kafscale.storage.segments.segment_writer import RollReason
from unit.storage.engines import TOPIC, open_engine, to_open, values_batch

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

COUNTS = (1_000, 10_000, 100_000)
PER_SEGMENT = 10_000
PRODUCERS = 20
"""How many transactions are open at a time."""
LOOKUPS = 2_000
RANGE = 200
"""The offsets of a fetch; about as many are of aborted transactions as are not."""
GROWTH_MAX = 4
"""How many times longer a search may take in a log that is a hundred times longer."""


class Writer:
    """Lets producers end transactions in turn; every other round aborts."""

    def __init__(self, engine: StorageEngine) -> None:
        self._engine = engine
        self._log = engine.logs.get(TOPIC, 0)
        self._round = 0

    async def write(self, count: int) -> None:
        for _ in range(0, count, PRODUCERS):
            for producer_id in range(PRODUCERS):
                self._begin(producer_id)
            control_type = ControlType(self._round % 2)
            for producer_id in range(PRODUCERS):
                self._log.append_end_marker(producer_id, 0, control_type, 0, clock_ms())
            self._round += 1
            if self._round % 20 == 0:
                await self._engine.wal.flush()
        await self._engine.wal.flush()

    def _begin(self, producer_id: int) -> None:
        guard = self._log.start_verification(producer_id, 0, self._round, adds_partition=False)
        batch = values_batch(
            [b"value"],
            transactional=True,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self._round,
        )
        self._log.append(batch, clock_ms(), guard=guard)


async def measure(engine: StorageEngine, log: PartitionLog) -> dict[str, float]:
    """Search ranges all over the log; return microseconds per search."""
    end_offset = log.last_stable_offset
    step = (end_offset - RANGE) / LOOKUPS
    starts = [round(number * step) for number in range(LOOKUPS)]
    found = 0
    for start in starts:  # So that sections are decoded.
        found += len(await engine.reader.aborted_transactions(log, start, start + RANGE))
    started = time.perf_counter()
    for start in starts:
        await engine.reader.aborted_transactions(log, start, start + RANGE)
    return {
        "us per search": (time.perf_counter() - started) / LOOKUPS * 1e6,
        "found per search": found / LOOKUPS,
    }


async def scenario(count: int, *, is_rolled: bool) -> dict[str, float]:
    store = MemoryObjectStore(clock=lambda: 0)
    limits = RollLimits(tail_bytes_max=1 << 30, wal_bytes_max=1 << 30, segment_age_ms_max=10**9)
    engine = await open_engine(store, partitions=[to_open(is_new=True)], limits=limits)
    log = engine.logs.get(TOPIC, 0)
    writer = Writer(engine)
    for written in range(0, count, PER_SEGMENT):
        await writer.write(min(count - written, PER_SEGMENT))
        if is_rolled:
            await engine.roll_scheduler.roll(log, RollReason.EXPLICIT)
            while log.tail.evict():
                pass
    figures = await measure(engine, log)
    engine.close()
    return figures


@pytest.mark.parametrize("is_rolled", [False, True], ids=["tail", "segments"])
def test_time_of_a_search_does_not_depend_on_the_length_of_the_log(comparisons, is_rolled):
    comparison = comparisons.new(
        f"find aborted transactions in {'segments' if is_rolled else 'the tail'}"
    )
    figures = []
    for count in COUNTS:
        figures.append(asyncio.run(scenario(count, is_rolled=is_rolled)))
        comparison.add(f"{count:,} transactions", figures[-1])
    for shorter, longer in pairwise(figures):
        assert longer["found per search"] == pytest.approx(shorter["found per search"], rel=0.2)
    assert figures[-1]["us per search"] < GROWTH_MAX * figures[0]["us per search"]
