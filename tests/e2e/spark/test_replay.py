"""Tests of the replay job: filters, transforms, faults and repeated runs."""

import sys
import time
from itertools import count
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.spark.jobs.replay import job
from kafscale.spark.jobs.replay.progress import SOURCE_HEADER, format_source
from kafscale.spark.read.location import Location
from services.broker import BrokerProcess
from services.kafka_records import Sent, count_offsets, create, produce, read
from services.killed_process import kill_at_step
from services.replaying import every, odd, replay_without_spark
from services.selection import long_except
from services.spark_driver import SparkDriver

START_MS = 1_700_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS = 3

numbers = count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("broker")
    with BrokerProcess(directory, segment_bytes="65536") as running:
        create(running.address, "orders", PARTITIONS, retention_ms="-1")
        for number, codec in enumerate(CODECS):
            produce(running.address, "orders", mixed(START_MS + number * 1000), codec=codec)
        yield running


def mixed(start_ms):
    for number in range(120):
        yield Sent(
            number % PARTITIONS,
            [b"key-%d" % (number % 7), None, b""][number % 4 % 3],
            [b'{"id": %d, "user": {"name": "u%d"}}' % (number, number), None, b""][number % 5 % 3],
            start_ms + number,
            (("one", b"1"), ("none", None)) if number % 6 == 0 else (),
        )
    yield Sent(1, b"large", b'"' + b"x" * 1_000_000 + b'"', start_ms + 500)


@pytest.fixture
def settings(broker):
    def make(**more):
        defaults = {
            "location": Location.parse(str(broker.data)),
            "topic": "orders",
            "target": f"replayed-{next(numbers)}",
            "bootstrap": broker.address,
        }
        return job.ReplaySettings(**(defaults | more))

    return make


def as_replayed(source, selects=lambda _: True):
    """Return the expected records of a replay without a transform."""
    return {
        partition: [
            record._replace(
                offset=offset, headers=(*record.headers, source_of(partition, record.offset))
            )
            for offset, record in enumerate(filter(selects, records))
        ]
        for partition, records in source.items()
    }


def source_of(partition, offset):
    return SOURCE_HEADER, format_source("orders", partition, offset).encode()


def test_replay_adds_the_source_header(broker, settings):
    job_settings = settings()
    assert replay_without_spark((job_settings, every)) == 5 * 121
    assert read(broker.address, job_settings.target) == as_replayed(read(broker.address, "orders"))


@pytest.mark.parametrize("step", long_except([1, 2, 5, 12], (5).__eq__))
def test_killed_filtered_replay_is_completed_exactly_once(broker, settings, step):
    job_settings = settings(where="offset % 2 = 1")
    assert kill_at_step(replay_without_spark, (job_settings, odd), step)
    replay_without_spark((job_settings, odd))
    source = read(broker.address, "orders")
    assert read(broker.address, job_settings.target) == as_replayed(
        source, lambda each: each.offset % 2
    )
    assert replay_without_spark((job_settings, odd)) == 0


@pytest.mark.parametrize("partitioner", ["keep", "key"])
def test_repeatedly_failing_replay_is_completed_exactly_once(broker, settings, partitioner):
    class FailedError(Exception):
        pass

    def fail(_step):
        if next(steps) == 0:
            raise FailedError

    job_settings = settings(partitioner=partitioner)
    for steps_before in range(1, 8):
        steps = iter([*range(steps_before, 0, -1), 0, *[1] * 99])
        with pytest.raises(FailedError):
            replay_without_spark((job_settings, every), fail)
    replay_without_spark((job_settings, every))
    result = [
        record
        for records in read(broker.address, job_settings.target).values()
        for record in records
    ]
    marks = sorted(record.headers[-1] for record in result)
    source = read(broker.address, "orders")
    assert marks == sorted(source_of(p, record.offset) for p in source for record in source[p])


def test_partitioning_by_key_keeps_the_order_of_keys(broker, settings):
    job_settings = settings(partitioner="key", partition_count=5)
    replay_without_spark((job_settings, every))
    result = read(broker.address, job_settings.target)
    assert sorted(result) == list(range(5))
    homes = {}
    places = {}
    for partition, records in result.items():
        for record in records:
            if record.key is not None:
                assert homes.setdefault(record.key, partition) == partition
            *source, offset = record.headers[-1][1].decode().split("/")
            assert int(offset) > places.get((partition, *source), -1)
            places[partition, *source] = int(offset)


def test_concurrent_replays_write_every_record_once(broker, settings):
    job_settings = settings()
    begun = []

    def run_the_other_first(_step):
        if not begun:
            begun.append(replay_without_spark((job_settings, every)))

    try:
        replay_without_spark((job_settings, every), run_the_other_first)
    except KafscaleError as error:
        assert "another run of this job" in str(error)  # noqa: PT017
    assert read(broker.address, job_settings.target) == as_replayed(read(broker.address, "orders"))


def test_records_of_other_producers_are_ignored(broker, settings):
    job_settings = settings(bounds={"endingTimestamp": str(START_MS + 1000)})
    assert replay_without_spark((job_settings, every)) == 121
    produce(
        broker.address,
        job_settings.target,
        [Sent(n % PARTITIONS, None, b"foreign", START_MS) for n in range(6_000)],
    )
    assert replay_without_spark((job_settings, every)) == 0
    later = settings(target=job_settings.target)
    assert replay_without_spark((later, every)) == 4 * 121


def test_replay_with_another_start_is_separate(settings):
    late = settings(bounds={"startingTimestamp": str(START_MS + 4_000)})
    assert replay_without_spark((late, every)) == 121
    assert replay_without_spark((settings(target=late.target), every)) == 5 * 121


def test_replay_rejects_itself_and_fewer_partitions(settings):
    with pytest.raises(InvalidRequestError, match="into itself"):
        settings(target="orders")
    with pytest.raises(InvalidRequestError, match="set the partitioner to key"):
        job.prepare(settings(partition_count=2))


# --- on Spark -------------------------------------------------------------------------------------


def slowly(records):
    """Give a test time to kill the task between two batches."""
    time.sleep(0.2)
    return records


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("seed", "kills"), [(1, 3), pytest.param(2, 12, marks=pytest.mark.long)])
def test_replay_with_killed_drivers_and_workers(broker, tmp_path, seed, kills):
    name = f"killed-{next(numbers)}"
    create(broker.address, name, 2, retention_ms="-1")
    sent = [Sent(n % 2, b"%d" % n, b"value", START_MS) for n in range(10_000)]
    produce(broker.address, name, sent)
    command = [sys.executable, "-m", "kafscale", "spark", "replay", name, f"{name}-copy"]
    command += ["--path", str(broker.data), "--bootstrap-server", broker.address]
    command += ["--function", f"{__name__}:slowly", "--conf", "spark.driver.memory=1g"]
    command += ["--conf", "spark.sql.execution.arrow.maxRecordsPerBatch=200"]
    with SparkDriver([*command, "--master", "local[2,4]"], tmp_path / "driver.log") as driver:
        driver.kill_repeatedly(
            kills, Random(seed), lambda: count_offsets(broker.address, f"{name}-copy")
        )
        driver.finish()
        assert driver.starts > 1
    found = read(broker.address, f"{name}-copy")
    assert {index: [each.key for each in records] for index, records in found.items()} == {
        index: [each.key for each in sent if each.partition == index] for index in range(2)
    }


def test_sql_transform(broker, settings, spark):
    job_settings = settings(
        where="json:id::int >= 100",
        select=(
            "concat(string(key), '!') AS key",
            "struct(json:user.name::string AS name, partition) AS value",
            "timestamp + INTERVAL 1 HOUR AS timestamp",
        ),
    )
    summary = job.run(spark, job_settings, progress=False)
    source = read(broker.address, "orders")
    expected = {
        partition: [
            (
                None if record.key is None else record.key + b"!",
                b'{"name":"u%d","partition":%d}' % (number, partition),
                record.timestamp_ms + 3_600_000,
                (*record.headers, source_of(partition, record.offset)),
            )
            for record in records
            if record.value and record.value.startswith(b'{"id": 1')
            for number in [int(record.value[7 : record.value.index(b",")])]
            if number >= 100
        ]
        for partition, records in source.items()
    }
    result = read(broker.address, job_settings.target)
    assert {
        partition: [(each.key, each.value, each.timestamp_ms, each.headers) for each in records]
        for partition, records in result.items()
    } == expected
    assert summary.facts["written"] == sum(map(len, expected.values())) > 0
    assert job.run(spark, job_settings, progress=False).facts["written"] == 0


def twice(records):
    """Return every record twice, the second time with another value."""
    rows = np.repeat(np.arange(records.num_rows), 2)
    doubled = records.take(pa.array(rows))
    values = pa.array([b"first", b"second"] * records.num_rows)
    return doubled.set_column(doubled.schema.get_field_index("value"), "value", values)


def test_function_returns_several_records(broker, settings, spark):
    job_settings = settings(function=f"{__name__}:twice", where="key IS NOT NULL AND partition = 2")
    job.run(spark, job_settings, progress=False)
    records = read(broker.address, job_settings.target)
    source = [each for each in read(broker.address, "orders")[2] if each.key is not None]
    assert [(each.key, each.value) for each in records[2]] == [
        (each.key, value) for each in source for value in (b"first", b"second")
    ]
    assert job.run(spark, job_settings, progress=False).facts["written"] == 0


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"where": "nonsense = 1"}, "nonsense"),
        ({"where": "key ="}, "yntax error"),
        ({"select": ("upper(text)",)}, "name each expression with AS"),
        ({"select": ("1 AS offset",)}, "name each expression with AS"),
    ],
)
def test_invalid_sql_is_reported_in_one_sentence(settings, spark, more, problem):
    with pytest.raises(InvalidRequestError, match=problem) as caught:
        job.run(spark, settings(**more), progress=False)
    assert "\n" not in str(caught.value)
    assert "SQLSTATE" not in str(caught.value)


def test_failing_sql_is_reported_in_one_sentence(settings, spark):
    with pytest.raises(KafscaleError, match="raised on purpose") as caught:
        job.run(spark, settings(where="raise_error('raised on purpose')"), progress=False)
    assert len(str(caught.value)) < 500
