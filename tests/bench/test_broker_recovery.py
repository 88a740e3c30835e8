"""The start of a broker with many partitions after a crash, until clients are served.

Each partition has a record that is in the WAL alone, so the start has to read the assignments, take
over all partitions, open them and replay the WAL.
"""

import time

import pytest
from confluent_kafka.admin import AdminClient

from bench.brokers import Candidate
from bench.process_usage import cpu_seconds, resident_bytes
from bench.test_broker_scale import produce_to_each
from services.broker import BrokerProcess

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

TOPICS = 10
PARTITIONS = 1_000
ROUNDS = 3


def test_start_after_a_crash(comparisons, scaled, tmp_path):
    partitions = scaled(PARTITIONS)
    comparison = comparisons.new(f"start after kill -9, {TOPICS * partitions:,} partitions")
    with BrokerProcess(tmp_path) as broker:
        candidate = Candidate("Kafscale", broker)
        topics = [candidate.new_topic(partitions) for _ in range(TOPICS)]
        for _ in range(ROUNDS):
            for topic in topics:
                produce_to_each(broker.address, topic, partitions)
            broker.kill()
            started = time.perf_counter()
            broker.start()
            admin = AdminClient({"bootstrap.servers": broker.address})
            assert set(topics) <= set(admin.list_topics(timeout=60).topics)
            seconds = time.perf_counter() - started
            comparison.add(
                candidate.name,
                {
                    "s until served": seconds,
                    "CPU s": cpu_seconds(broker.process_id),
                    "MB": resident_bytes(broker.process_id) / 1e6,
                },
            )
