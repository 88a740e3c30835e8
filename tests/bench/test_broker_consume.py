"""Consuming a topic from its beginning: right after it was produced, and after a restart.

After a restart a broker has nothing in memory; the operating system still may, for both alike.
"""

import pytest

from bench.brokers import KAFKA, Candidate
from bench.consumption import consume, consume_in_group
from bench.producer_perf import LARGE, RECORD_BYTES, produce
from services import java

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="Kafka needs Java and Maven"),
]

PARTITIONS = 6
RECORDS = 300_000
ROUNDS = 3
GROUP_ROUNDS = 5


def figures(candidate: Candidate, records: int, read, *arguments):
    before = candidate.cpu_seconds()
    megabytes_per_second = read(candidate.address, *arguments, records)
    used = candidate.cpu_seconds() - before
    return {"MB/s": megabytes_per_second, "CPU-s/GB": used / (records * RECORD_BYTES / 1e9)}


def filled(candidate: Candidate, records: int) -> str:
    topic = candidate.new_topic(PARTITIONS)
    produce(candidate.address, topic, records, batching=LARGE)
    return topic


def test_consuming(comparisons, candidates, scaled):
    what = f"consume 1 KiB records, {PARTITIONS} partitions"
    hot, again = (
        comparisons.new(f"{what}, hot", KAFKA),
        comparisons.new(f"{what}, hot, again", KAFKA),
    )
    cold = comparisons.new(f"{what}, after a restart", KAFKA)
    records = scaled(RECORDS)
    for _ in range(ROUNDS):
        for candidate in candidates[:2]:
            how = (consume, filled(candidate, records), PARTITIONS)
            hot.add(candidate.name, figures(candidate, records, *how))
            again.add(candidate.name, figures(candidate, records, *how))
            candidate.server.terminate()
            candidate.server.start()
            cold.add(candidate.name, figures(candidate, records, *how))


def test_consuming_in_a_group(comparisons, candidates, scaled):
    """The same topic again and again, in turns, so that a JVM gets warm."""
    what = f"kafka-consumer-perf-test, {PARTITIONS} partitions"
    hot, cold = (
        comparisons.new(f"{what}, hot", KAFKA),
        comparisons.new(f"{what}, after a restart", KAFKA),
    )
    records = scaled(RECORDS)
    runs = [
        (candidate, (consume_in_group, filled(candidate, records))) for candidate in candidates[:2]
    ]
    for _ in range(GROUP_ROUNDS):
        for candidate, how in runs:
            hot.add(candidate.name, figures(candidate, records, *how))
    for _ in range(ROUNDS):
        for candidate, how in runs:
            candidate.server.terminate()
            candidate.server.start()
            cold.add(candidate.name, figures(candidate, records, *how))
