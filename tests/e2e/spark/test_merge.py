"""Many small segments become few large ones, and readers notice nothing."""

import json
import time
from random import Random
from threading import Event, Thread

import pytest

from e2e.spark.keyed_topic import (
    TOPIC,
    KeyedTopic,
    Seen,
    group_consumer,
    killed_after,
    taken,
    with_librdkafka,
)
from kafscale.records import iterate
from kafscale.spark.jobs.merge import job
from kafscale.spark.jobs.merge.job import MergeSettings
from kafscale.spark.log.bucket_listing import list_bucket
from kafscale.spark.plan.task_planner import OffsetRange, plan
from kafscale.spark.read.slice_reader import SliceReader
from kafscale.spark.source.location import Location
from services.s3_server import broker_settings
from services.shell import Shell

FAST = {"local_fsync": "false", "group_initial_rebalance_delay_ms": "0"}


def merged(spark, topic, *, on_step=lambda _step: None, target_bytes=0):
    settings = MergeSettings(
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


def test_segments_become_few_and_records_stay(spark, topic):
    topic.fill()
    topic.write(20)  # These are in the WAL.
    told = merged(spark, topic)
    assert told["rows"][0]["segmentsBefore"] == 10
    assert told["rows"][0]["segmentsAfter"] == len(topic.segment_keys()) == 2
    assert merged(spark, topic)["made"] == 0, "there is nothing left to do"
    assert with_librdkafka(topic) == sorted(topic.written)
    topic.broker.kill()
    topic.broker.start()
    assert with_librdkafka(topic) == sorted(topic.written)
    topic.write(20)
    assert with_librdkafka(topic) == sorted(topic.written)


@pytest.mark.long
def test_a_size_can_be_asked_for(spark, topic):
    topic.fill()
    told = merged(spark, topic, target_bytes=120_000)
    assert 2 < told["rows"][0]["segmentsAfter"] < 10
    assert max(path.stat().st_size for path in topic.broker.objects("**/*.kfs")) <= 120_000
    assert with_librdkafka(topic) == sorted(topic.written)


def test_killed_at_any_step_it_loses_nothing_and_can_be_run_again(spark, topic):
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
def test_readers_notice_nothing(spark, topic):
    """A consumer group and a reader of the store, over and over, while segments are swapped."""
    topic.fill()
    expected = sorted(topic.written)
    is_over, looks = Event(), []

    def read_store():
        while not is_over.is_set():
            looks.append(_read_store(topic))

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
                        seen.extend(taken(consumer, 10)) if "swap " in step else None
                    ),
                )
            seen += taken(consumer, len(expected) - len(seen))
        finally:
            is_over.set()
            reader.join()
    assert sorted(seen) == expected
    assert len(looks) > 1
    assert all(look == expected for look in looks)


def _read_store(topic):
    location = topic.location
    with location.open() as store:
        found = list_bucket(store, location.namespace, [TOPIC])
        ranges = [
            OffsetRange(*place, each.start_offset, each.end_offset)
            for place, each in found.partitions.items()
        ]
        reader = SliceReader(store, location.namespace)
        return sorted(
            Seen(part.partition, record.offset, record.key, record.value)
            for task in plan(found, ranges)
            for part in task.slices
            for read in reader.read(part)
            for batch in read.batches
            for record in iterate(batch)
        )


@pytest.mark.usefixtures("spark")
def test_the_command_merges_in_a_bucket(start_broker, s3):
    settings = broker_settings(s3.bucket)
    broker = start_broker(**settings, **FAST, storage_wal_puts_per_second="1000")
    topic = KeyedTopic(broker, Location(namespace="default", bucket=s3.bucket))
    topic.fill()
    shell = Shell(broker.address, control_servers=topic.control[0], **settings)
    told = json.loads(shell("spark", "merge", "-o", "json"))
    assert told["rows"][0]["segmentsAfter"] == len(topic.segment_keys()) == 2
    assert "segments before" in shell("spark", "merge", "--topic", TOPIC)
    assert with_librdkafka(topic) == sorted(topic.written)
    assert "there is no topic 'absent'" in shell("spark", "merge", "-t", "absent", code=1)
    assert "is not a size" in shell("spark", "merge", "--target", "large", code=2)
