"""Tests of `kafscale spark scrub` with a running broker and other jobs."""

import json
import time
from random import Random
from threading import Event, Thread

import pytest
from typer.testing import CliRunner

from e2e.spark.keyed_topic import TOPIC, KeyedTopic, with_librdkafka
from kafscale.cli.main import app
from kafscale.spark.jobs.compact import job
from kafscale.spark.jobs.compact.job import CompactSettings
from kafscale.spark.jobs.merge import job as merge_job
from kafscale.spark.jobs.scrub import job as scrub_job
from kafscale.spark.jobs.scrub.job import ScrubSettings
from kafscale.spark.jobs.shared.segment_install import RewriteSettings

FAST = {"local_fsync": "false"}


def clock():
    return time.time_ns() // 1_000_000


def scrubbed(spark, topic, **how):
    settings = ScrubSettings(location=topic.location, **how)
    return scrub_job.run(spark, settings, clock=clock, progress=False)


@pytest.fixture
def topic(start_broker):
    return KeyedTopic(start_broker(**FAST))


@pytest.mark.long
def test_scrub_finds_no_damage_after_jobs(spark, topic):
    topic.fill()
    topic.write(50)
    report = scrubbed(spark, topic)
    assert report.findings == ()
    result = report.data()
    assert (result["rows"][0]["segments"], result["rows"][0]["records"]) == (10, 1000)
    assert result["walObjects"] > 0
    settings = CompactSettings(location=topic.location, control=topic.control)
    job.run(spark, settings, clock=clock, random=Random(), progress=False)
    report = scrubbed(spark, topic)
    assert report.findings == ()
    assert report.data()["rows"][0]["records"] < 1000


def test_scrub_finds_no_damage_while_a_broker_writes(spark, topic):
    topic.fill()
    is_over = Event()

    def keep_writing():
        while not is_over.is_set():
            topic.write(50)
            topic.flush()

    writer = Thread(target=keep_writing)
    writer.start()
    try:
        for _ in range(2):
            merging = RewriteSettings(location=topic.location, control=topic.control)
            merge_job.run(spark, merging, clock=clock, random=Random(), progress=False)
            assert scrubbed(spark, topic).findings == ()
    finally:
        is_over.set()
        writer.join()
    assert with_librdkafka(topic) == sorted(topic.written)


def test_command_finds_damage_and_repairs_indexes(spark, topic):
    topic.fill()
    command = ("spark", "scrub", "--path", str(topic.broker.data))
    assert "scrub: damaged 0" in topic.shell(*command)
    assert "there is no topic 'absent'" in topic.shell(*command, "-t", "absent", code=1)
    indexes = topic.broker.objects(f"**/{TOPIC}/0/*.index")
    segments = topic.broker.objects(f"**/{TOPIC}/1/*.kfs")
    topic.broker.terminate()
    indexes[0].unlink()
    indexes[1].write_bytes(indexes[1].read_bytes()[:-1])
    data = bytearray(segments[2].read_bytes())
    data[50] ^= 1
    segments[2].write_bytes(data)
    later_ms = clock() + 120_000
    settings = ScrubSettings(location=topic.location)
    actual = scrub_job.run(spark, settings, clock=lambda: later_ms, progress=False)
    assert sorted(str(each.kind) for each in actual.findings if each.is_damage) == [
        "damaged index",
        "damaged segment",
        "missing index",
    ]
    refused = topic.shell(*command, "--repair", code=1)
    assert "damaged segment" in refused
    assert "damaged index" not in refused
    repair = ScrubSettings(location=topic.location, repair=True)
    scrub_job.run(spark, repair, clock=lambda: later_ms, progress=False)
    result = json.loads(_printed(*command, "-o", "json"))
    assert [each["kind"] for each in result["findings"]] == ["damaged segment"]
    assert indexes[0].exists()
    topic.broker.start()


def _printed(*command):
    """Return the output of a command that reports problems."""
    result = CliRunner().invoke(app, command, prog_name="kafscale")
    assert result.exit_code == 1
    return result.stdout
