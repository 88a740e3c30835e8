"""The bill of a cluster: requests to the bucket for a gigabyte that is written, and read once.

Everything that was written is made into segments at the end, one for each partition: what comes
about by size or by age where there is more to write, or more time. Then all brokers are started
again, so that readers find nothing in memory; a consumer reads everything from the start.
"""

import pytest

from bench.cluster_servers import DirectCluster
from bench.comparison import Figures
from bench.consumption import consume
from bench.producer_perf import LARGE, RECORD_BYTES, produce
from services import java

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="the perf tool needs Java and Maven"),
]

BROKERS = 3
RECORDS = 500_000
REQUESTS = {
    "PUT": 's3_operations_total{operation="put"',
    "GET": 's3_operations_total{operation="get',
    "HEAD": 's3_operations_total{operation="head"',
    "LIST": 's3_operations_total{operation="list"',
    "DELETE": 's3_operations_total{operation="delete"',
}
WAL_PUTS = "wal_puts_total"
WAL_OBJECTS = "wal_objects"


@pytest.fixture(scope="module")
def writing(comparisons):
    return comparisons.new(f"S3 requests of {BROKERS} brokers per GB written")


@pytest.fixture(scope="module")
def reading(comparisons):
    return comparisons.new(f"S3 requests of {BROKERS} brokers per GB read once, nothing in memory")


@pytest.mark.parametrize("partitions", [10, 1_000])
def test_requests_per_gigabyte(writing, reading, tmp_path, scaled, partitions):
    records = scaled(RECORDS)
    with DirectCluster(tmp_path, brokers=BROKERS) as cluster:
        topic = cluster.new_topic(partitions)
        cluster.wait_until_settled()
        before = requests(cluster)
        report = produce(cluster.bootstrap, topic, records, batching=LARGE)
        cluster.roll_segments()
        wait_until_trimmed(cluster)
        written = requests(cluster)
        cluster.restart()
        cluster.wait_until_settled()
        restarted = requests(cluster)
        read_speed = consume(cluster.bootstrap, topic, partitions, records)
        read = requests(cluster)
    gigabytes = records * RECORD_BYTES / 1e9
    writing.add(
        f"{partitions:,} partitions",
        {"MB/s": report.megabytes_per_second}
        | {name: (written[name] - before[name]) / gigabytes for name in before},
    )
    reading.add(
        f"{partitions:,} partitions",
        {"MB/s": read_speed} | {name: (read[name] - restarted[name]) / gigabytes for name in read},
    )


def wait_until_trimmed(cluster: DirectCluster) -> None:
    """Return when no more WAL objects are deleted; the newest ones stay, and those in doubt."""
    seen: list[float] = []
    while (left := cluster.samples(WAL_OBJECTS)) != seen:
        seen = left


def requests(cluster: DirectCluster) -> Figures:
    names = {**REQUESTS, "of PUT, WAL": WAL_PUTS}
    return dict(zip(names, cluster.samples(*names.values()), strict=True))
