"""Reads a whole topic and measures the throughput, with librdkafka or Kafka's perf tool.

librdkafka assigns partitions without a group; the perf tool needs a group.
"""

import subprocess
import time
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition

from bench.producer_perf import RECORD_BYTES, TOOL_FLAGS
from services import java

MESSAGES_PER_CALL = 10_000
WAIT_S_MAX = 30
RUN_S_MAX = 240


def consume(
    address: str, topic: str, partitions: int, record_count: int, **settings: object
) -> float:
    """Read records with librdkafka; return MB/s from the first call to the last record."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",  # Required, though no group is joined.
            "enable.auto.commit": False,
            # The default backoff of a second on a full queue would hide the speed of the broker.
            "fetch.queue.backoff.ms": 1,
        }
        | settings
    )
    try:
        started = time.perf_counter()
        # A number, because librdkafka needs half a second to look up "beginning".
        consumer.assign([TopicPartition(topic, i, 0) for i in range(partitions)])
        remaining = record_count
        while remaining > 0:
            messages = consumer.consume(MESSAGES_PER_CALL, timeout=WAIT_S_MAX)
            assert messages, f"{remaining} of {record_count} records are missing"
            assert messages[0].error() is None, messages[0].error()
            assert len(messages[0].value()) == RECORD_BYTES
            remaining -= len(messages)
        seconds = time.perf_counter() - started
    finally:
        consumer.close()
    assert remaining == 0, f"{-remaining} records too many"
    return record_count * RECORD_BYTES / 1e6 / seconds


def consume_in_group(address: str, topic: str, record_count: int) -> float:
    """Read records with `kafka-consumer-perf-test`; return its MB/s while it fetched."""
    done = subprocess.run(  # noqa: S603 - the command is a bench's own.
        [  # noqa: S607
            "java",
            *TOOL_FLAGS,
            "-cp",
            f"{java.jars()}/*",
            "org.apache.kafka.tools.ConsumerPerformance",
            "--bootstrap-server",
            address,
            "--topic",
            topic,
            "--group",
            f"bench-{uuid4()}",
            "--messages",
            str(record_count),
            "--hide-header",
        ],
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch records/s
    fields = done.stdout.splitlines()[-1].split(", ")
    assert int(fields[4]) >= record_count, done.stdout + done.stderr
    return float(fields[8]) * 1024 * 1024 / 1e6
