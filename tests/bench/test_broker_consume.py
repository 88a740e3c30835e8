"""Consuming a topic from its beginning: right after it was produced, and after a restart.

After a restart a broker has nothing in memory; the operating system still may, for both alike.
"""

import pytest

from bench.brokers import KAFKA, Contestant
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


def figures(contestant: Contestant, records: int, read, *arguments):
    before = contestant.cpu_seconds()
    megabytes_per_second = read(contestant.address, *arguments, records)
    used = contestant.cpu_seconds() - before
    return {"MB/s": megabytes_per_second, "CPU-s/GB": used / (records * RECORD_BYTES / 1e9)}


def filled(contestant: Contestant, records: int) -> str:
    topic = contestant.new_topic(PARTITIONS)
    produce(contestant.address, topic, records, batching=LARGE)
    return topic


def test_consuming(contests, contestants, scaled):
    what = f"consume 1 KiB records, {PARTITIONS} partitions"
    hot, again = contests.new(f"{what}, hot", KAFKA), contests.new(f"{what}, hot, again", KAFKA)
    cold = contests.new(f"{what}, after a restart", KAFKA)
    records = scaled(RECORDS)
    for _ in range(ROUNDS):
        for contestant in contestants[:2]:
            how = (consume, filled(contestant, records), PARTITIONS)
            hot.add(contestant.name, figures(contestant, records, *how))
            again.add(contestant.name, figures(contestant, records, *how))
            contestant.server.terminate()
            contestant.server.start()
            cold.add(contestant.name, figures(contestant, records, *how))


def test_consuming_in_a_group(contests, contestants, scaled):
    """The same topic again and again, in turns, so that a JVM gets warm."""
    what = f"kafka-consumer-perf-test, {PARTITIONS} partitions"
    hot, cold = contests.new(f"{what}, hot", KAFKA), contests.new(f"{what}, after a restart", KAFKA)
    records = scaled(RECORDS)
    runs = [
        (contestant, (consume_in_group, filled(contestant, records)))
        for contestant in contestants[:2]
    ]
    for _ in range(GROUP_ROUNDS):
        for contestant, how in runs:
            hot.add(contestant.name, figures(contestant, records, *how))
    for _ in range(ROUNDS):
        for contestant, how in runs:
            contestant.server.terminate()
            contestant.server.start()
            cold.add(contestant.name, figures(contestant, records, *how))
