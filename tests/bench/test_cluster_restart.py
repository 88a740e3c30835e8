"""A rolling restart of a cluster, as seen by idempotent producers with default settings.

Each broker in turn is stopped gracefully and started again, followed by a pause in which partitions
move back to it. Two producers write meanwhile: librdkafka, and Kafka's perf tool. The reference is
an undisturbed cluster.

The PUT budget is lifted: librdkafka has 5 requests of one partition each in flight, so with the
default of 2 PUTs per second, 10 partitions of a broker wait longer for each other than for a
restart.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.cluster_sender import Sender
from bench.cluster_servers import DirectCluster
from bench.comparison import Figures
from bench.producer_perf import produce
from services import java
from services.waiting import wait_until

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="the perf tool needs Java and Maven"),
]

BROKERS = 3
PARTITIONS = 30
RECORDS_PER_SECOND = 1_000
SECONDS = 40
"""How long the perf tool writes; it cannot be stopped early, so restarts must fit in."""
PEACE_SECONDS = 10
REST_S = 4
LIFTED = {"storage_wal_puts_per_second": "50"}


def test_rolling_restart(comparisons, tmp_path, scaled):
    comparison = comparisons.new(
        f"rolling restart of {BROKERS} brokers, {PARTITIONS} partitions,"
        f" 2 producers of {RECORDS_PER_SECOND} records/s each"
    )
    with DirectCluster(tmp_path, brokers=BROKERS, **LIFTED) as cluster:
        topic = cluster.new_topic(PARTITIONS)
        cluster.wait_until_settled()
        for name, figures in measure_during(cluster, topic, PEACE_SECONDS, dict).items():
            comparison.add(f"{name}, in peace", figures)
        restarted = measure_during(cluster, topic, scaled(SECONDS), lambda: roll(cluster))
    for name, figures in restarted.items():
        comparison.add(name, figures)
    assert restarted["librdkafka"]["errors"] == 0


def measure_during(
    cluster: DirectCluster, topic: str, seconds: int, act: Callable[[], Figures]
) -> dict[str, Figures]:
    """The figures of both producers during an action, which must end before they do."""
    records = RECORDS_PER_SECOND * seconds
    sender = Sender(
        cluster.bootstrap, topic, partitions=PARTITIONS, records_per_second=RECORDS_PER_SECOND
    )
    with ThreadPoolExecutor(1) as pool, sender:
        perf = pool.submit(
            produce, cluster.bootstrap, topic, records, records_per_second=RECORDS_PER_SECOND
        )
        time.sleep(REST_S)
        done = act()
        assert not perf.done(), f"no producer ran at the end of {done}: use a larger scale"
        report = perf.result()
    return {
        "librdkafka": sender.figures() | done,
        "Java": {
            "records": records,
            "errors": 0,  # The perf tool's report is refused where a single record is missing.
            **report.latencies_ms,
        },
    }


def roll(cluster: DirectCluster) -> Figures:
    """Restart one broker after another; return the time of the slowest."""
    stops, starts = [], []
    for node in cluster.nodes.values():
        began = time.perf_counter()
        node.terminate()
        stopped = time.perf_counter()
        node.start()
        wait_until(lambda node=node: node.is_serving, f"broker {node.broker_id}")
        stops.append(stopped - began)
        starts.append(time.perf_counter() - stopped)
        time.sleep(REST_S)
    return {"stop s": max(stops), "start s": max(starts)}
