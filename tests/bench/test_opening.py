"""A partition with many segments: opening it takes one listing and one read, and deleting half of
them by retention holds up no other partition."""

import asyncio
import time

import pytest

from doubles.turn_timer import measured_turns
from kafscale.records import BatchView, Record, build
from kafscale.storage.formats import segment
from kafscale.storage.objects.local.store import LocalObjectStore
from unit.storage.engines import NAMESPACE, TOPIC, log_settings, open_engine

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

SEGMENTS = 300_000
TURN_MS_MAX = 50


def test_opening_a_partition_of_many_segments(comparisons, scaled, tmp_path):
    comparison = comparisons.new("one partition of many segments, on local disk")
    count = scaled(SEGMENTS)
    store = LocalObjectStore(tmp_path, fsync=False)
    directory = tmp_path / NAMESPACE / TOPIC / "0"
    directory.mkdir(parents=True)
    for base_offset in range(count):
        created = segment_of_one_record(base_offset)
        stem = directory / f"segment-{base_offset:020d}"
        stem.with_suffix(".kfs").write_bytes(b"".join(created.parts))
        stem.with_suffix(".index").write_bytes(created.index)

    async def scenario() -> dict[str, float]:
        started = time.perf_counter()
        with measured_turns() as opening:
            engine = await open_engine(store)
        opened = time.perf_counter()
        log = engine.logs.get(TOPIC, 0)
        assert log.high_watermark == count
        log.settings = log_settings(retention_bytes=log.segments.total_bytes // 2)
        with measured_turns() as deleting:
            await engine.retention.enforce(log)
        assert count / 3 < log.start_offset < count * 2 / 3
        return {
            "segments": count,
            "opened in s": opened - started,
            "longest turn, ms": opening.longest_seconds * 1000,
            "half deleted in s": time.perf_counter() - opened,
            "longest turn meanwhile, ms": deleting.longest_seconds * 1000,
        }

    figures = asyncio.run(scenario())
    comparison.add("Kafscale", figures)
    assert figures["longest turn, ms"] < TURN_MS_MAX
    assert figures["longest turn meanwhile, ms"] < TURN_MS_MAX


def segment_of_one_record(base_offset: int) -> segment.Built:
    batch = BatchView(bytearray(build([Record(0, 1, None, b"x")])))
    batch.stamp(base_offset, 0)
    builder = segment.Builder(0, 4096, compression=None, prior_max_timestamp_ms=-1)
    builder.append(batch)
    return builder.finish()
