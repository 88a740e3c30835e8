"""Producing: Kafka's own perf tool against our broker and Kafka's, on the same disk.

Records of 1 KiB to 6 partitions with acks=all. Kafka forces nothing to the disk before it answers;
ours is measured both ways.
"""

from functools import partial

import pytest

from bench.brokers import KAFKA, Candidate
from bench.producer_perf import BY_DEFAULT, LARGE, RECORD_BYTES, Batching, produce
from services import java

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="Kafka needs Java and Maven"),
]

PARTITIONS = 6
RECORDS = 150_000
ROUNDS = 3


def figures(candidate: Candidate, topic: str, batching: Batching, records: int):
    before = candidate.cpu_seconds()
    report = produce(candidate.address, topic, records, batching=batching)
    used = candidate.cpu_seconds() - before
    return {
        "MB/s": report.megabytes_per_second,
        "CPU-s/GB": used / (records * RECORD_BYTES / 1e9),
        **report.latencies_ms,
    }


@pytest.mark.parametrize("batching", [BY_DEFAULT, LARGE], ids=lambda batching: batching.name)
def test_producing(comparisons, candidates, scaled, batching):
    comparison = comparisons.new(
        f"produce 1 KiB records, {PARTITIONS} partitions, {batching.name}", KAFKA
    )
    records = scaled(RECORDS)
    runs = {
        candidate.name: partial(figures, candidate, candidate.new_topic(PARTITIONS), batching)
        for candidate in candidates
    }
    for run in runs.values():
        run(records)  # The JVM compiles what it has run for a while.
    for _ in range(ROUNDS):
        for name, run in runs.items():
            comparison.add(name, run(records))
