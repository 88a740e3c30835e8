"""The processor time of reading segments that are not cached, as consumers do that catch up."""

import asyncio
import time

import pytest

from kafscale.records import BatchView, Record, build
from kafscale.storage.formats import segment
from kafscale.storage.objects.local.store import LocalObjectStore
from kafscale.storage.read.read_ahead import ReadAheadLimits
from unit.storage.engines import NAMESPACE, TOPIC, open_engine

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

SEGMENTS = 8
SEGMENT_BYTES = 64 * 1024 * 1024
FETCH_BYTES = 1024 * 1024
ROUNDS = 3


def write_segments(directory, count: int, batch_bytes: int) -> int:
    """Write segments; return the end offset."""
    directory.mkdir(parents=True)
    template = build([Record(0, 1, None, bytes(batch_bytes - 80))])
    offset = 0
    for _ in range(count):
        builder = segment.Builder(0, 4096, compression=None, prior_max_timestamp_ms=-1)
        first = offset
        while builder.size_bytes < SEGMENT_BYTES:
            batch = BatchView(bytearray(template))
            batch.stamp(offset, 0)
            builder.append(batch)
            offset += 1
        built = builder.finish()
        stem = directory / f"segment-{first:020d}"
        stem.with_suffix(".kfs").write_bytes(b"".join(built.parts))
        stem.with_suffix(".index").write_bytes(built.index)
    return offset


@pytest.mark.parametrize("batch_bytes", [1024, 16 * 1024, 256 * 1024])
def test_reading_cold_segments(comparisons, scaled, tmp_path, batch_bytes):
    comparison = comparisons.new(f"read cold segments, batches of {batch_bytes} bytes")
    end_offset = write_segments(tmp_path / NAMESPACE / TOPIC / "0", scaled(SEGMENTS), batch_bytes)
    store = LocalObjectStore(tmp_path, fsync=False)

    async def scenario() -> dict[str, float]:
        engine = await open_engine(store, read_ahead=ReadAheadLimits(2, 8 << 20))
        log = engine.logs.get(TOPIC, 0)
        offset = size_bytes = 0
        started, processor = time.perf_counter(), time.process_time()
        while offset < end_offset:
            slices, offset = await engine.reader.read(log, offset, FETCH_BYTES, first=True)
            size_bytes += sum(map(len, slices))
        seconds = time.perf_counter() - started
        processor = time.process_time() - processor
        engine.close()
        return {"MB/s": size_bytes / seconds / 1e6, "CPU-s/GB": processor / size_bytes * 1e9}

    for _ in range(ROUNDS):
        comparison.add("Kafscale", asyncio.run(scenario()))
