"""Retention deletes whole segments by size and by age, and old offsets become out of range."""

import time

import pytest

from services.wire import EARLIEST, Wire, batch_of

pytestmark = pytest.mark.timeout(60)

SETTINGS = {
    "segment_bytes": "20000",
    "storage_retention_check_interval_ms": "100",
    "local_fsync": "false",
}


def wait_for(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_retention_bytes_deletes_the_oldest_segments(start_broker):
    """N-18: objects are deleted, old offsets are out of range, and no gap follows."""
    broker = start_broker(**SETTINGS)
    with Wire(broker.port) as wire:
        wire.create("topic", retention_bytes=60_000, compression_type="producer")
        for _ in range(60):
            wire.produce("topic", batch_of([bytes(5000)]))
        wait_for(lambda: wire.offset("topic", EARLIEST).offset >= 40)
        start = wire.offset("topic", EARLIEST).offset
        assert start < 60
        wait_for(lambda: len(broker.objects("**/topic/0/*.kfs")) <= 5)
        assert wire.fetch("topic", 0).error_code == 1
        assert [record.offset for record in wire.read("topic")] == list(range(start, 60))
        assert wire.produce("topic", batch_of([b"next"])).base_offset == 60
    broker.kill()
    broker.start()
    with Wire(broker.port) as wire:
        assert wire.offset("topic", EARLIEST).offset >= start
        assert wire.read("topic")[-1].offset == 60


def test_retention_ms_deletes_old_segments_only(start_broker):
    broker = start_broker(**SETTINGS)
    with Wire(broker.port) as wire:
        wire.create("topic", retention_ms=3_600_000, compression_type="producer")
        yesterday_ms = time.time_ns() // 1_000_000 - 24 * 3_600_000
        for _ in range(20):
            wire.produce("topic", batch_of([bytes(5000)], timestamp_ms=yesterday_ms))
        for _ in range(20):
            wire.produce("topic", batch_of([bytes(5000)]))
        wait_for(lambda: wire.offset("topic", EARLIEST).offset > 10)
        start = wire.offset("topic", EARLIEST).offset
        assert start <= 20
        assert [record.offset for record in wire.read("topic")] == list(range(start, 40))
