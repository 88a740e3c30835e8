"""Throughput of one broker and of two, on one machine that they share with everything else.

Each cluster has its own etcd and S3 server, and is idle while another one is measured. If the CPUs
are busy all the time, a second broker cannot increase the throughput; the CPU time is then the
relevant figure.

By default a broker uploads 2 objects per second, to limit the cost. A producer with at most 5
requests in flight then waits for uploads and not for the broker. So the PUT budget is lifted here;
one broker with the default budget is measured as well.
"""

from collections.abc import Iterator
from functools import partial

import pytest

from bench.cluster_servers import DirectCluster, machine_seconds
from bench.comparison import Figures
from bench.producer_perf import BY_DEFAULT, LARGE, RECORD_BYTES, Batching, produce
from services import java

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="the perf tool needs Java and Maven"),
]

PARTITIONS = 6
RECORDS = 150_000
ROUNDS = 3
BUDGETED_SHARE = 15
"""The factor for the number of records where the PUT budget is the limit."""
LIFTED = {"storage_wal_puts_per_second": "1000"}
ONE, TWO, BUDGETED = "1 broker", "2 brokers", "1 broker, 2 PUTs/s"


@pytest.fixture
def clusters(tmp_path) -> Iterator[dict[str, DirectCluster]]:
    with (
        DirectCluster(tmp_path / "one", brokers=1, **LIFTED) as one,
        DirectCluster(tmp_path / "two", brokers=2, **LIFTED) as two,
        DirectCluster(tmp_path / "budgeted", brokers=1) as budgeted,
    ):
        yield {ONE: one, TWO: two, BUDGETED: budgeted}


@pytest.mark.parametrize("batching", [BY_DEFAULT, LARGE], ids=lambda batching: batching.name)
def test_throughput(comparisons, clusters, scaled, batching):
    comparison = comparisons.new(
        f"cluster on S3: produce 1 KiB records, {PARTITIONS} partitions, {batching.name}", ONE
    )
    records = dict.fromkeys(clusters, scaled(RECORDS))
    records[BUDGETED] //= BUDGETED_SHARE
    runs = {
        name: partial(produced, cluster, cluster.new_topic(PARTITIONS), batching, records[name])
        for name, cluster in clusters.items()
    }
    for run in runs.values():
        run()  # Warm-up.
    for _ in range(ROUNDS):
        for name, run in runs.items():
            comparison.add(name, run())


def produced(cluster: DirectCluster, topic: str, batching: Batching, records: int) -> Figures:
    used, (worked, passed) = cluster.cpu_seconds(), machine_seconds()
    report = produce(cluster.bootstrap, topic, records, batching=batching)
    used, (worked_after, passed_after) = cluster.cpu_seconds() - used, machine_seconds()
    return {
        "MB/s": report.megabytes_per_second,
        "CPU-s/GB": used / (records * RECORD_BYTES / 1e9),
        **report.latencies_ms,
        "machine busy %": 100 * (worked_after - worked) / (passed_after - passed),
    }
