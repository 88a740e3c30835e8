"""Tests of `kafscale spark compact` with several clients and with faults."""

import json
import time
from random import Random

import pytest

from e2e.spark.keyed_topic import (
    READERS,
    TOPIC,
    KeyedTopic,
    ReadRecord,
    consume_and_commit,
    group_consumer,
    killed_after,
    with_java,
    with_librdkafka,
)
from e2e.spark.records import rows
from kafscale.spark import register
from kafscale.spark.jobs.compact import job
from kafscale.spark.jobs.compact.job import CompactSettings
from services import java
from services.waiting import wait_until

FAST = {"local_fsync": "false", "group_initial_rebalance_delay_ms": "0"}


def clock():
    return time.time_ns() // 1_000_000


def compacted(spark, topic, *, on_step=lambda _step: None, later_ms=0, **how):
    settings = CompactSettings(
        location=topic.location, control=topic.control, topics=(TOPIC,), **how
    )
    summary = job.run(
        spark,
        settings,
        clock=lambda: clock() + later_ms,
        random=Random(),
        progress=False,
        on_step=on_step,
    )
    assert summary.problems == ()
    return summary.data()


def with_spark(spark, topic):
    register(spark)
    options = {"subscribe": TOPIC, "includeHeaders": "true"}
    table = spark.read.format("kafscale").options(**options).load(str(topic.broker.data))
    return [ReadRecord(row.partition, row.offset, row.key, row.value) for row in rows(table)]


@pytest.fixture
def topic(start_broker):
    return KeyedTopic(start_broker(**FAST))


def test_every_client_reads_the_latest_record_of_each_key(spark, topic):
    topic.fill()
    result = compacted(spark, topic)
    assert result["rows"][0]["recordsBefore"] == len(topic.written) == 1000
    assert result["rows"][0]["recordsAfter"] == len(topic.latest())
    assert len(topic.segment_keys()) == 2
    for name, read in READERS.items():
        assert read(topic) == topic.latest(), name
    assert with_spark(spark, topic) == topic.latest()
    topic.broker.terminate()
    topic.broker.start()
    for name, read in READERS.items():
        assert read(topic) == topic.latest(), f"{name}, after a restart"
    left = topic.latest()
    topic.write(50)
    assert with_librdkafka(topic) == sorted([*left, *topic.written[-50:]])
    assert topic.staged_keys() == []


@pytest.mark.long
@pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here")
def test_java_consumer_reads_a_compacted_topic(spark, topic):
    topic.fill()
    compacted(spark, topic)
    assert with_java(topic) == topic.latest()


@pytest.mark.long
def test_tombstones_are_removed_after_delete_retention(spark, start_broker):
    topic = KeyedTopic(start_broker(**FAST), delete_retention_ms="3600000")
    topic.fill()
    compacted(spark, topic)
    compacted(spark, topic, later_ms=3_000_000, is_forced=True)
    assert with_librdkafka(topic) == topic.latest()
    compacted(spark, topic, later_ms=3_700_000, is_forced=True)
    left = [seen for seen in topic.latest() if seen.value is not None]
    assert len(left) < len(topic.latest())
    assert with_librdkafka(topic) == left


def test_retention_does_not_delete_compacted_topics(start_broker):
    broker = start_broker(**FAST, storage_retention_check_interval_ms="200")
    topic = KeyedTopic(broker, retention_ms="1", retention_bytes="1")
    topic.write(50)
    topic.flush()
    time.sleep(1)
    assert len(with_librdkafka(topic)) == 50
    topic.shell("topic", "alter", TOPIC, "--config", "cleanup.policy=compact,delete")
    wait_until(lambda: topic.segment_keys() == [], "retention")


@pytest.mark.long
def test_compaction_killed_at_any_step_can_be_repeated(spark, topic):
    topic.fill()
    steps, is_over = 0, False
    while not is_over:
        is_over = not killed_after(steps, lambda on_step: compacted(spark, topic, on_step=on_step))
        steps += 1
        assert set(topic.latest()) <= set(with_librdkafka(topic)), steps
    assert steps >= 6, "there are steps to be killed at"
    assert with_librdkafka(topic) == topic.latest()
    assert topic.staged_keys() == []


@pytest.mark.long
def test_broker_killed_during_the_swap(spark, topic):
    topic.fill()
    deaths = []

    def on_step(step):
        if step.startswith("swap ") and not deaths:
            deaths.append(step)
            topic.broker.kill()
            topic.broker.start()

    compacted(spark, topic, on_step=on_step)
    assert deaths
    assert with_librdkafka(topic) == topic.latest()


@pytest.mark.long
def test_group_reads_no_record_twice_during_compaction(spark, topic):
    """Its position may be at a record that is removed."""
    topic.fill()
    seen = []
    with group_consumer(topic, "readers") as consumer:
        seen += consume_and_commit(consumer, 300)
        compacted(
            spark,
            topic,
            on_step=lambda step: (
                seen.extend(consume_and_commit(consumer, 10)) if "swap " in step else None
            ),
        )
        seen += consume_and_commit(consumer, 20)
    topic.write(40)
    with group_consumer(topic, "readers") as consumer:
        while max(topic.written) not in seen:
            seen += consume_and_commit(consumer, 1)
    assert len(seen) == len(set(seen))
    assert set(seen) <= set(topic.written)


@pytest.mark.usefixtures("spark")
def test_command_compacts_topics_with_the_cleanup_policy(topic):
    topic.write(200)
    topic.flush()
    command = ("spark", "compact", "--path", str(topic.broker.data), "-o", "json")
    result = json.loads(topic.shell(*command))
    assert [row["topic"] for row in result["rows"]] == [TOPIC]
    assert result["rows"][0]["recordsAfter"] == len(topic.latest())
    assert json.loads(topic.shell(*command))["rows"] == [], "nothing is dirty any more"
    topic.shell("topic", "create", "others")
    others = ("spark", "compact", "--path", str(topic.broker.data), "--topic", "others")
    assert "there is no topic" in topic.shell(*others[:-1], "absent", code=1)
    topic.wait_for("others")
    assert "is not compact" in topic.shell(*others, code=1)
    refused = topic.shell("spark", "compact", "--force", code=2)
    assert "--force needs --topic" in refused
