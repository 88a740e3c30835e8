"""Tests of restoring topics from a bucket."""

import shutil
from itertools import count

import pytest

from kafscale.errors import InvalidRequestError, KafscaleError, UnknownTopicError
from kafscale.spark.jobs.restore import job
from kafscale.spark.jobs.restore.task import restore_partition
from kafscale.spark.read.location import Location
from services.broker import BrokerProcess
from services.kafka_records import Sent, create, produce, read
from services.killed_process import kill_at_step
from services.selection import long_except

START_MS = 1_700_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS = 3

numbers = count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("broker")
    with BrokerProcess(directory, segment_bytes="65536") as running:
        create(
            running.address, "orders", PARTITIONS, retention_ms="-1", max_message_bytes="2000000"
        )
        for number, codec in enumerate(CODECS):
            produce(running.address, "orders", mixed(START_MS + number * 1000), codec=codec)
        disorder = [(40, b"late"), (9_000, b"early"), (50, b"late"), (9_000, b"last")]
        produce(
            running.address,
            "orders",
            [Sent(0, b"disorder", value, START_MS + time_ms) for time_ms, value in disorder],
        )
        yield running


def mixed(start_ms):
    """Return nulls, headers, empty values and a large one, in all partitions."""
    for number in range(120):
        yield Sent(
            number % PARTITIONS,
            [None, b"", b"key-%d" % number][number % 4 % 3],
            [b"value" * number, None, b""][number % 5 % 3],
            start_ms + number,
            (("one", b"1"), ("none", None), ("one", b"")) if number % 6 == 0 else (),
        )
    yield Sent(1, b"large", bytes(range(256)) * 4096, start_ms + 500)


@pytest.fixture
def settings(broker):
    def make(**more):
        defaults = {
            "location": Location.parse(str(broker.data)),
            "topic": "orders",
            "target": f"restored-{next(numbers)}",
            "bootstrap": broker.address,
        }
        return job.RestoreSettings(**(defaults | more))

    return make


def restored(settings):
    items = job.prepare(settings)
    results = [restore_partition(item) for item in items]
    return job.summarize(settings, items, results, 0.0)


def expected(source, until_ms=None):
    return {
        partition: [
            record._replace(offset=offset)
            for offset, record in enumerate(
                record for record in records if until_ms is None or record.timestamp_ms <= until_ms
            )
        ]
        for partition, records in source.items()
    }


def test_restore_keeps_records_and_offsets(broker, settings):
    job_settings = settings()
    summary = restored(job_settings)
    assert read(broker.address, job_settings.target) == read(broker.address, "orders")
    assert summary.facts["equalOffsets"]
    assert sum(row[summary.columns.index("rebuilt")] for row in summary.rows) == 0


@pytest.mark.parametrize(
    "after_ms", long_except([-1, 0, 45, 2_060, 4_119, 4_500, 10_000], (45, 4_119).__contains__)
)
def test_restore_up_to_a_timestamp(broker, settings, after_ms):
    job_settings = settings(until_ms=START_MS + after_ms)
    restored(job_settings)
    source = read(broker.address, "orders")
    assert read(broker.address, job_settings.target) == expected(source, START_MS + after_ms)


def test_restore_up_to_offsets(broker, settings):
    job_settings = settings(end_offsets='{"orders": {"0": 17, "1": -1, "2": 0}}')
    restored(job_settings)
    source = read(broker.address, "orders")
    assert read(broker.address, job_settings.target) == {0: source[0][:17], 1: source[1], 2: []}


def test_repeated_restore_writes_nothing(settings):
    job_settings = settings(until_ms=START_MS + 2_060)
    first, second = restored(job_settings), restored(job_settings)
    assert second.facts["written"] == 0
    assert second.facts["records"] == first.facts["records"] > 0


@pytest.mark.parametrize("step", long_except([1, 2], (2).__eq__))
def test_restore_killed_at_a_step_is_completed_by_the_next(broker, settings, step):
    job_settings = settings(until_ms=START_MS + 3_070)
    assert kill_at_step(restore_partition, job.prepare(job_settings)[1], step)
    restored(job_settings)
    source = read(broker.address, "orders")
    assert read(broker.address, job_settings.target) == expected(source, START_MS + 3_070)


def test_restore_killed_anywhere_is_completed_by_the_next(broker, settings):
    class KilledError(Exception):
        pass

    def kill(_step):
        if next(steps) == 0:
            raise KilledError

    create(broker.address, "many-batches", 1, retention_ms="-1")
    produce(
        broker.address,
        "many-batches",
        [Sent(0, b"%d" % number, b"", START_MS + number % 5) for number in range(150)],
        settings={"batch.num.messages": 5},
    )
    source = read(broker.address, "many-batches")
    job_settings = settings(topic="many-batches", until_ms=START_MS + 3)
    for steps_before in range(4):
        steps = iter([*range(steps_before, 0, -1), 0, *[1] * 99])
        (item,) = job.prepare(job_settings)
        with pytest.raises(KilledError):
            restore_partition(item, kill)
    restored(job_settings)
    assert read(broker.address, job_settings.target) == expected(source, START_MS + 3)


def test_concurrent_restores_write_every_record_once(broker, settings):
    job_settings = settings()
    first = job.prepare(job_settings)
    second = job.prepare(job_settings)
    begun = {}

    def run_the_other_first(_step):
        if not begun:
            begun["other"] = [restore_partition(item) for item in second]

    for item in first:
        try:
            restore_partition(item, run_the_other_first)
        except KafscaleError as error:
            assert "another run of this job" in str(error)  # noqa: PT017
    assert read(broker.address, job_settings.target) == read(broker.address, "orders")


def test_restore_waits_for_a_killed_broker(broker, settings):
    job_settings = settings()
    killed = []

    def kill_broker_once(step):
        if step == "appended" and not killed:
            killed.append(step)
            broker.kill()
            broker.start()

    for item in job.prepare(job_settings):
        restore_partition(item, kill_broker_once)
    assert killed
    assert read(broker.address, job_settings.target) == read(broker.address, "orders")


def test_restore_rejects_a_topic_with_other_records(broker, settings):
    create(broker.address, "foreign", PARTITIONS)
    produce(broker.address, "foreign", [Sent(2, b"mine", b"mine", START_MS // 2)])
    before = read(broker.address, "foreign")
    with pytest.raises(InvalidRequestError, match="exists and has other records"):
        restored(settings(target="foreign"))
    assert read(broker.address, "foreign") == before


def test_restore_rejects_another_point_in_time(settings):
    job_settings = settings(until_ms=START_MS + 50)
    restored(job_settings)
    with pytest.raises(InvalidRequestError, match="another restore"):
        restored(settings(target=job_settings.target, until_ms=START_MS + 60))


def test_restore_rejects_another_partition_count(broker, settings):
    create(broker.address, "narrow", PARTITIONS - 1)
    with pytest.raises(InvalidRequestError, match="has 2 partitions, but 3 are needed"):
        restored(settings(target="narrow"))


def test_restore_rejects_a_missing_topic(settings):
    with pytest.raises(UnknownTopicError, match="no objects of topic absent"):
        restored(settings(topic="absent"))


def test_restore_of_log_append_time(broker, settings):
    create(broker.address, "stamped", 1, message_timestamp_type="LogAppendTime")
    produce(broker.address, "stamped", [Sent(0, None, b"%d" % n, n + 1) for n in range(10)])
    job_settings = settings(topic="stamped")
    restored(job_settings)
    assert read(broker.address, job_settings.target) == read(broker.address, "stamped")


def test_deleted_topic_is_restored_from_a_copy_of_its_objects(broker, settings, tmp_path, spark):
    """On Spark, like the command, but without parsing options."""
    create(broker.address, "doomed", PARTITIONS, retention_ms="-1")
    produce(broker.address, "doomed", [each for each in mixed(START_MS) if each.key != b"large"])
    source = read(broker.address, "doomed")
    backup = tmp_path / "backup"
    shutil.copytree(broker.data / "objects", backup / "objects")
    shutil.rmtree(backup / "objects" / "default" / "_catalog")
    job_settings = settings(topic="doomed", location=Location.parse(str(backup)))
    summary = job.run(spark, job_settings, progress=False)
    assert read(broker.address, job_settings.target) == source
    assert summary.facts["records"] == sum(map(len, source.values()))
