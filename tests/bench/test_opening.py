"""Opening a partition with many segments: one listing and one read, for any number of segments."""

import asyncio
import time

import pytest

from kafscale.records import BatchView, Record, build
from kafscale.storage.formats import segment
from kafscale.storage.objects.local.store import LocalObjectStore
from unit.storage.engines import NAMESPACE, TOPIC, open_engine

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

SEGMENTS = 300_000


def test_opening_a_partition_of_many_segments(comparisons, scaled, tmp_path):
    comparison = comparisons.new("open one partition on local disk")
    count = scaled(SEGMENTS)
    store = LocalObjectStore(tmp_path, fsync=False)
    directory = tmp_path / NAMESPACE / TOPIC / "0"
    directory.mkdir(parents=True)
    for base_offset in range(count):
        created = segment_of_one_record(base_offset)
        stem = directory / f"segment-{base_offset:020d}"
        stem.with_suffix(".kfs").write_bytes(b"".join(created.parts))
        stem.with_suffix(".index").write_bytes(created.index)

    async def scenario() -> float:
        started = time.perf_counter()
        engine = await open_engine(store)
        seconds = time.perf_counter() - started
        assert engine.logs.get(TOPIC, 0).high_watermark == count
        return seconds

    comparison.add("Kafscale", {"segments": count, "seconds": asyncio.run(scenario())})


def segment_of_one_record(base_offset: int) -> segment.Built:
    batch = BatchView(bytearray(build([Record(0, 1, None, b"x")])))
    batch.stamp(base_offset, 0)
    builder = segment.Builder(0, 4096, compression=None, prior_max_timestamp_ms=-1)
    builder.append(batch)
    return builder.finish()
