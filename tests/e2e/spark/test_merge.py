"""Tests of `kafscale spark merge` with concurrent readers and with faults."""

import json
import time
from random import Random
from threading import Event, Thread

import pytest

from e2e.spark.keyed_topic import (
    TOPIC,
    KeyedTopic,
    ReadRecord,
    consume_and_commit,
    group_consumer,
    killed_after,
    with_librdkafka,
)
from kafscale.records import iterate
from kafscale.spark.jobs.merge import job
from kafscale.spark.jobs.shared.segment_install import RewriteSettings
from kafscale.spark.plan.task_planner import OffsetRange, plan
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.spark.read.location import Location
from kafscale.spark.read.slice_reader import SliceReader
from services.s3_server import broker_settings
from services.shell import Shell

FAST = {"local_fsync": "false", "group_initial_rebalance_delay_ms": "0"}


def merged(spark, topic, *, on_step=lambda _step: None, target_bytes=0):
    settings = RewriteSettings(
        location=topic.location, control=topic.control, topics=(TOPIC,), target_bytes=target_bytes
    )
    summary = job.run(
        spark,
        settings,
        clock=lambda: time.time_ns() // 1_000_000,
        random=Random(),
        progress=False,
        on_step=on_step,
    )
    assert summary.problems == ()
    return summary.data()


@pytest.fixture
def topic(start_broker):
    return KeyedTopic(start_broker(**FAST))


def test_merge_keeps_all_records(spark, topic):
    topic.fill()
    topic.write(20)  # These are in the WAL.
    result = merged(spark, topic)
    assert result["rows"][0]["segmentsBefore"] == 10
    assert result["rows"][0]["segmentsAfter"] == len(topic.segment_keys()) == 2
    assert merged(spark, topic)["created"] == 0, "there is nothing left to do"
    assert with_librdkafka(topic) == sorted(topic.written)
    topic.broker.kill()
    topic.broker.start()
    assert with_librdkafka(topic) == sorted(topic.written)
    topic.write(20)
    assert with_librdkafka(topic) == sorted(topic.written)


@pytest.mark.long
def test_merge_to_a_target_size(spark, topic):
    topic.fill()
    result = merged(spark, topic, target_bytes=120_000)
    assert 2 < result["rows"][0]["segmentsAfter"] < 10
    assert max(path.stat().st_size for path in topic.broker.objects("**/*.kfs")) <= 120_000
    assert with_librdkafka(topic) == sorted(topic.written)


@pytest.mark.long
def test_merge_killed_at_any_step_can_be_repeated(spark, topic):
    topic.fill()
    steps, is_over = 0, False
    while not is_over:
        is_over = not killed_after(steps, lambda on_step: merged(spark, topic, on_step=on_step))
        steps += 1
        assert with_librdkafka(topic) == sorted(topic.written), steps
    assert steps >= 4
    assert len(topic.segment_keys()) == 2
    assert topic.staged_keys() == []


@pytest.mark.long
def test_readers_during_a_merge(spark, topic):
    """A consumer group and a Spark reader read repeatedly while segments are swapped."""
    topic.fill()
    expected = sorted(topic.written)
    is_over, reads = Event(), []

    def read_store():
        while not is_over.is_set():
            reads.append(_read_store(topic))

    reader = Thread(target=read_store)
    seen = []
    with group_consumer(topic, "readers") as consumer:
        reader.start()
        try:
            for target_bytes in (50_000, 100_000, 150_000, 0):
                merged(
                    spark,
                    topic,
                    target_bytes=target_bytes,
                    on_step=lambda step: (
                        seen.extend(consume_and_commit(consumer, 10)) if "swap " in step else None
                    ),
                )
            seen += consume_and_commit(consumer, len(expected) - len(seen))
        finally:
            is_over.set()
            reader.join()
    assert sorted(seen) == expected
    assert len(reads) > 1
    assert all(each == expected for each in reads)


def _read_store(topic):
    location = topic.location
    with location.open() as store:
        result = list_bucket(store, location.namespace, [TOPIC])
        ranges = [
            OffsetRange(*place, each.start_offset, each.end_offset)
            for place, each in result.partitions.items()
        ]
        reader = SliceReader(store, location.namespace)
        return sorted(
            ReadRecord(part.partition, record.offset, record.key, record.value)
            for task in plan(result, ranges)
            for part in task.slices
            for read in reader.read(part)
            for batch in read.batches
            for record in iterate(batch)
        )


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_command_merges_in_a_bucket(start_broker, s3):
    settings = broker_settings(s3.bucket)
    broker = start_broker(**settings, **FAST, storage_wal_puts_per_second="1000")
    topic = KeyedTopic(broker, Location(namespace="default", bucket=s3.bucket))
    topic.fill()
    shell = Shell(broker.address, control_servers=topic.control[0], **settings)
    result = json.loads(shell("spark", "merge", "-o", "json"))
    assert result["rows"][0]["segmentsAfter"] == len(topic.segment_keys()) == 2
    assert "segments before" in shell("spark", "merge", "--topic", TOPIC)
    assert with_librdkafka(topic) == sorted(topic.written)
    assert "there is no topic 'absent'" in shell("spark", "merge", "-t", "absent", code=1)
    assert "is not a size" in shell("spark", "merge", "--target", "large", code=2)
