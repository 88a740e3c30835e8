"""The number of S3 requests of a broker with little load, and the latency of its producers.

100 partitions get 1,000 records a second. The budget of PUTs bounds how often they become durable;
segments come on top, two PUTs each.
"""

import time

import pytest

from bench.brokers import Candidate
from bench.producer_perf import produce
from services import java, s3_server
from services.broker import BrokerProcess
from services.exposition import sample

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="the perf tool needs Java and Maven"),
]

PARTITIONS = 100
RECORDS_PER_SECOND = 1_000
SECONDS = 20
PUTS_PER_SECOND = 2.0
"""The default of `storage.walPutsPerSecond`."""


def test_put_rate_and_latency(comparisons, scaled, tmp_path):
    if not s3_server.is_available():
        pytest.skip("an S3 server needs Go to be built")
    comparison = comparisons.new(
        f"{RECORDS_PER_SECOND} records/s of 1 KiB to {PARTITIONS} partitions, on S3"
    )
    with s3_server.s3_server(tmp_path) as bucket, broker(tmp_path, bucket) as server:
        candidate = Candidate("Kafscale", server)
        topic = candidate.new_topic(PARTITIONS)
        before, started = server.http("/metrics")[1], time.perf_counter()
        report = produce(
            server.address,
            topic,
            RECORDS_PER_SECOND * scaled(SECONDS),
            records_per_second=RECORDS_PER_SECOND,
        )
        seconds = time.perf_counter() - started
        after = server.http("/metrics")[1]
    puts, rolls = (
        sample(after, name) - sample(before, name)
        for name in ('s3_operations_total{operation="put"', "segments_rolled_total")
    )
    comparison.add(
        candidate.name,
        {
            "PUTs/s": puts / seconds,
            "budget/s": PUTS_PER_SECOND,
            "rolls": rolls,
            **report.latencies_ms,
        },
    )
    # A full or late object goes out regardless, and puts the budget in a debt of one burst.
    assert puts <= PUTS_PER_SECOND * seconds + 8 + 2 * rolls


def broker(directory, bucket) -> BrokerProcess:
    return BrokerProcess(
        directory / "broker",
        s3_bucket=bucket.name,
        s3_endpoint=bucket.endpoint,
        s3_path_style="true",
        s3_access_key=bucket.access_key,
        s3_secret_key=bucket.secret_key,
    )
