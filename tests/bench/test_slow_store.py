"""A broker whose bucket has the latency of S3: 50 to 100 ms are added to each round trip.

Producers wait for the PUT of their WAL object, and consumers that catch up for GETs; read-ahead is
meant to hide the latter. Consumers that keep up are served from memory, whatever the latency.
"""

import asyncio
import statistics
import time
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from bench.brokers import Candidate
from bench.comparison import Comparison, Figures
from bench.consumption import consume
from bench.producer_perf import LARGE, RECORD_BYTES, produce
from kafscale.control_plane.client import ControlClient
from services import java, s3_server
from services.broker import BrokerProcess
from services.s3_server import broker_settings
from services.slow_link import slow_link
from services.wire import LATEST, Wire

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="the perf tool needs Java and Maven"),
]

PARTITIONS = 6
STEADY_RECORDS_PER_SECOND = 500
STEADY_SECONDS = 20
RECORDS = 200_000
FETCHES = 500
SEGMENT_BYTES = 16 * 1024 * 1024
"""Two segments and a rest per partition, so that a reader has to find the next one."""
UNBOUNDED_PUTS = {"storage_wal_puts_per_second": "1000"}
READ_AHEAD = {"": "3", ", no read-ahead": "0"}
READ_ROUNDS = 2


class Tables(NamedTuple):
    producing: Comparison
    reading: Comparison
    catching_up: Comparison


@pytest.fixture(scope="module")
def tables(comparisons):
    return Tables(
        comparisons.new(f"produce with a slow bucket, {STEADY_RECORDS_PER_SECOND} records/s"),
        comparisons.new("large batches, and fetches of the newest record, with a slow bucket"),
        comparisons.new("catch up from segments with a slow bucket, caches empty"),
    )


@pytest.mark.parametrize("round_trip_ms", [0, 50, 100])
def test_slow_store(tables, tmp_path, scaled, round_trip_ms):
    if not s3_server.is_available():
        pytest.skip("an S3 server needs Go to be built")
    name = f"+{round_trip_ms} ms"
    with (
        s3_server.s3_server(tmp_path) as bucket,
        slow_link(urlsplit(bucket.endpoint).port or 0, delay_s=round_trip_ms / 2000) as port,
        BrokerProcess(
            tmp_path / "broker",
            **broker_settings(bucket) | {"s3_endpoint": f"http://127.0.0.1:{port}"},
            segment_bytes=str(SEGMENT_BYTES),
        ) as broker,
    ):
        candidate = Candidate(name, broker)
        steady_records = STEADY_RECORDS_PER_SECOND * scaled(STEADY_SECONDS)
        for row, settings in {name: {}, f"{name}, PUTs unbounded": UNBOUNDED_PUTS}.items():
            if settings:
                restart(broker, settings)
            report = produce(
                broker.address,
                candidate.new_topic(PARTITIONS),
                steady_records,
                records_per_second=STEADY_RECORDS_PER_SECOND,
            )
            tables.producing.add(row, report.latencies_ms)
        topic, records = candidate.new_topic(PARTITIONS), scaled(RECORDS)
        report = produce(broker.address, topic, records, batching=LARGE)
        tables.reading.add(
            name, {"produce MB/s": report.megabytes_per_second} | newest(broker, topic)
        )
        asyncio.run(roll(broker))
        for _ in range(READ_ROUNDS):
            for suffix, segments in READ_AHEAD.items():
                restart(broker, {"readahead_segments": segments})
                speed = consume(broker.address, topic, PARTITIONS, records)
                tables.catching_up.add(f"{name}{suffix}", {"MB/s": speed})


def restart(broker: BrokerProcess, settings: dict[str, str]) -> None:
    """Change settings, and empty the caches."""
    broker.terminate()
    broker.settings |= settings
    broker.start()


def newest(broker: BrokerProcess, topic: str) -> Figures:
    """The latency of a fetch of the newest record."""
    seconds = []
    with Wire(broker.port) as wire:
        offset = wire.offset(topic, LATEST).offset - 1
        for _ in range(FETCHES):
            started = time.perf_counter()
            fetched = wire.fetch(topic, offset, max_bytes=RECORD_BYTES)
            seconds.append(time.perf_counter() - started)
            assert fetched.error_code == 0
            assert fetched.records
    percentiles = statistics.quantiles(seconds, n=100)
    return {f"fetch p{percent} ms": 1000 * percentiles[percent - 1] for percent in (50, 95, 99)}


async def roll(broker: BrokerProcess) -> None:
    """Have all records in segments, so that none are read from the WAL after a restart."""
    async with ControlClient(broker.control_address) as client:
        await client.flush()
