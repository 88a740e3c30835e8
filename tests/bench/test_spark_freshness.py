"""How old records are when they can be queried: produced at a steady rate, committed to Iceberg.

From the time that a producer gave a record to the end of the commit that made it visible.
"""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from bench.brokers import Candidate
from bench.producer_perf import produce
from kafscale.spark.jobs.lake.job import LakeJob
from kafscale.spark.jobs.lake.settings import LakeSettings
from kafscale.spark.read.location import Location
from kafscale.spark.runtime.parallel_map import parallel_map
from kafscale.spark.source.subscription import Subscription
from kafscale.spark.tables.target import TableFormat, Target
from services import java
from services.broker import BrokerProcess
from services.spark import missing, running

pytestmark = [
    pytest.mark.bench,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(missing()) or not java.is_available(), reason="Spark needs Java"),
]

CATALOG = "objects/default/_catalog/topics.json"
RECORDS_PER_SECOND = 1000
SECONDS = 60
WARM_ROUNDS = 5


class _EndError(Exception):
    """Enough rounds were made."""


@pytest.mark.parametrize("interval_ms", [1000, 10_000])
def test_freshness(comparisons, tmp_path, scaled, interval_ms):
    seconds = scaled(SECONDS)
    p50s, p99s = [], []
    with (
        BrokerProcess(tmp_path, local_fsync="false") as broker,
        running(tmp_path / "spark.log") as spark,
        ThreadPoolExecutor(1) as threads,
    ):
        topic = Candidate("", broker).new_topic(6, "clicks")
        while "clicks" not in (broker.data / CATALOG).read_text():
            time.sleep(0.1)
        sending = threads.submit(
            produce,
            broker.address,
            topic,
            seconds * RECORDS_PER_SECOND,
            records_per_second=RECORDS_PER_SECOND,
        )
        settings = LakeSettings(
            location=Location.parse(str(broker.data)),
            subscription=Subscription(names=frozenset({"clicks"})),
            interval_ms=interval_ms,
        )
        target = Target(table_format=TableFormat.ICEBERG, path=str(tmp_path / "lake"))
        lake = LakeJob(settings, target, partial(parallel_map, spark))

        def rest(pause_seconds):
            totals = lake.totals.get("clicks")
            if totals and totals.freshness_ms:
                p50s.append(totals.freshness_ms[0])
                p99s.append(totals.freshness_ms[1])
            if sending.done():
                raise _EndError
            time.sleep(pause_seconds)

        with pytest.raises(_EndError):
            lake.run(rest)
        sending.result()
    comparison = comparisons.new(
        f"Spark: freshness of an Iceberg table, {RECORDS_PER_SECOND} records/s"
    )
    warm = slice(min(WARM_ROUNDS, len(p50s) // 2), -1)
    comparison.add(
        f"a commit every {interval_ms / 1000:g} s",
        {"p50 ms": statistics.median(p50s[warm]), "p99 ms": statistics.median(p99s[warm])},
    )
