"""Memory: what a broker holds after a gigabyte has been produced to a hundred partitions."""

import pytest

from bench.brokers import KAFKA
from bench.process_usage import resident_bytes
from bench.producer_perf import LARGE, produce
from services import java

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="Kafka needs Java and Maven"),
]

PARTITIONS = 100
RECORDS = 1_000_000


def test_memory_after_a_gigabyte(comparisons, candidates, scaled):
    comparison = comparisons.new(f"memory, 1 KiB records to {PARTITIONS} partitions", KAFKA)
    records = scaled(RECORDS)
    for candidate in candidates[:2]:
        topic = candidate.new_topic(PARTITIONS)
        before = resident_bytes(candidate.server.process_id)
        report = produce(candidate.address, topic, records, batching=LARGE)
        after = resident_bytes(candidate.server.process_id)
        comparison.add(
            candidate.name,
            {
                "records": records,
                "MB before": before / 1e6,
                "MB after": after / 1e6,
                "MB/s": report.megabytes_per_second,
            },
        )
