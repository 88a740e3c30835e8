"""`spark.read.format("kafscale")` returns exactly the records that a consumer reads."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import spark_partition_id

from e2e.spark.records import Client, rows, s3a, wait_for_catalog
from kafscale.spark import register
from kafscale.spark.read.location import Location
from services.broker import BrokerProcess
from services.s3_server import ACCESS_KEY, SECRET_KEY, broker_settings
from services.selection import long_except
from services.waiting import wait_until

TOPICS = {"orders": 3, "clicks": 2, "users": 1}
SMALL_SEGMENTS = {"segment_bytes": "400000", "local_fsync": "false"}
SWITCH = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A running broker, its data directory, and the records that a consumer reads."""
    with BrokerProcess(tmp_path_factory.mktemp("log"), **SMALL_SEGMENTS) as broker:
        client = Client(broker.address)
        start_ms = time.time_ns() // 1_000_000 - 3_600_000
        for number, (topic, partitions) in enumerate(TOPICS.items()):
            client.create(topic, partitions)
            client.produce_mixed(topic, partitions, start_ms + number * 10_000, seed=number)
        client.create("empty", 2)
        wait_for_catalog(Location.parse(str(broker.data)), "empty")
        yield broker, client.consume(list(TOPICS))


@pytest.fixture
def table(spark, log):
    """Load frames of the log with options."""
    register(spark)

    def make(**options):
        broker, _ = log
        options = {"subscribe": "orders", "includeHeaders": "true"} | options
        if not options["subscribe"]:
            del options["subscribe"]
        return spark.read.format("kafscale").options(**options).load(str(broker.data))

    return make


@pytest.fixture
def expected(log):
    _, found = log
    return found


def of(found, topic="orders"):
    return [row for row in found if row.topic == topic]


# --- records --------------------------------------------------------------------------------------


def test_batch_equals_what_a_consumer_reads(table, log, expected):
    """All codecs, 0 B to 1 MiB, nulls, headers; in segments, and in the WAL of a running broker."""
    broker, _ = log
    assert broker.objects("**/orders/0/*.kfs")
    assert len(expected) > 500
    assert rows(table(subscribe="orders,clicks,users")) == expected
    assert rows(table(subscribe="", subscribePattern="clicks|us.*")) == [
        *of(expected, "clicks"),
        *of(expected, "users"),
    ]


def test_batch_after_the_broker_has_stopped(spark, start_broker):
    broker = start_broker(**SMALL_SEGMENTS)
    client = Client(broker.address)
    client.create("orders", 2)
    client.produce_mixed("orders", 2, time.time_ns() // 1_000_000, seed=9)
    expected = client.consume(["orders"])
    register(spark)
    options = {"subscribe": "orders", "includeHeaders": "true", "path": str(broker.data)}
    assert rows(spark.read.format("kafscale").options(**options).load()) == expected
    broker.terminate()
    assert rows(spark.read.format("kafscale").options(**options).load()) == expected


def test_bucket_is_read_with_the_credentials_of_the_session(spark, start_broker, s3, capfd):
    """Planners and tasks get them; plans and errors do not show them."""
    broker = start_broker(**broker_settings(s3.bucket), storage_wal_puts_per_second="1000")
    client = Client(broker.address)
    client.create("orders", 2)
    client.produce_mixed("orders", 2, time.time_ns() // 1_000_000, seed=5)
    with s3a(spark, s3.bucket):
        reader = spark.read.format("kafscale").option("subscribe", "orders")
        frame = reader.option("includeHeaders", "true").load(f"s3a://{s3.bucket.name}/default")
        assert rows(frame) == client.consume(["orders"])
        frame.explain("extended")
        shown = [capfd.readouterr().out, frame._jdf.queryExecution().toString()]
        assert "BatchScan kafscale" in shown[0]
        with pytest.raises(PySparkException) as raised:
            reader.load("s3a://no-such-bucket/default").count()
    for text in [*shown, str(raised.value)]:
        assert SECRET_KEY not in text
        assert ACCESS_KEY not in text


# --- bounds and filters ---------------------------------------------------------------------------


def test_starting_and_ending_offsets(table, expected):
    starting = {"orders": {"0": 5, "1": -2, "2": 11}}
    ending = {"orders": {"0": 9, "1": 20, "2": -1}}
    found = rows(table(startingOffsets=json.dumps(starting), endingOffsets=json.dumps(ending)))
    assert found == [
        row
        for row in of(expected)
        if (row.partition == 0 and 5 <= row.offset < 9)
        or (row.partition == 1 and row.offset < 20)
        or (row.partition == 2 and row.offset >= 11)
    ]


def test_assigned_partitions(table, expected):
    found = rows(table(subscribe="", assign='{"orders": [1], "users": [0]}'))
    assert found == [*[row for row in of(expected) if row.partition == 1], *of(expected, "users")]


def test_starting_and_ending_timestamps(table, expected):
    times = sorted(row.timestamp_ms for row in of(expected))
    since_ms, until_ms = times[len(times) // 3], times[-3]
    found = rows(table(startingTimestamp=str(since_ms), endingTimestamp=str(until_ms)))
    desired = []
    for partition in range(3):
        held = [row for row in of(expected) if row.partition == partition]
        first = next(row.offset for row in held if row.timestamp_ms >= since_ms)
        end = next((row.offset for row in held if row.timestamp_ms >= until_ms), len(held))
        desired += held[first:end]
    assert found == desired
    assert 0 < len(found) < len(of(expected))


def test_topics_without_records(table):
    assert rows(table(subscribe="empty")) == []


@pytest.mark.parametrize("is_on", long_except(["true", "false"], "true".__eq__))
def test_filters_with_and_without_pushdown(spark, table, expected, is_on):
    desired = [
        row
        for row in of(expected)
        if 10 <= row.offset < 40 and row.partition != 1 and row.timestamp_ms > row.offset
    ]
    middle_ms = sorted(row.timestamp_ms for row in desired)[len(desired) // 2]
    before = spark.conf.get(SWITCH)
    spark.conf.set(SWITCH, is_on)
    try:

        def filtered(*more):
            """Load a new frame, as pushed filters require."""
            loaded = table(subscribe="orders,clicks", pushFilters="true")
            conditions = ("topic = 'orders'", "offset >= 10", "offset < 40", "partition in (0, 2)")
            return loaded.where(" and ".join((*conditions, *more)))

        assert rows(filtered()) == desired
        plan = filtered()._jdf.queryExecution().optimizedPlan().toString()
        assert ("Filter" in plan) is (is_on == "false")
        young = filtered(f"timestamp >= timestamp_millis({middle_ms})")
        assert rows(young) == [row for row in desired if row.timestamp_ms >= middle_ms]
        assert rows(filtered("(key = 'key' or value is null)")) == [
            row for row in desired if row.key == b"key" or row.value is None
        ]
        assert rows(filtered("offset < 0")) == []
    finally:
        spark.conf.set(SWITCH, before)


def test_a_frame_can_be_used_several_times(spark, table, expected):
    """Spark 4.2 would reuse the pushed filters of one query in the next."""
    assert spark.conf.get(SWITCH) == "true"
    loaded = table(columns="offset")
    few = loaded.where("offset < 10")
    held = of(expected)
    few_count = sum(row.offset < 10 for row in held)
    assert [loaded.count(), few.count(), loaded.count()] == [len(held), few_count, len(held)]
    assert few.union(loaded).count() == few_count + len(held)


# --- columns and tasks ----------------------------------------------------------------------------


def test_selected_columns(spark, table, log, expected):
    chosen = table(columns="offset,partition").where("partition = 1")
    assert chosen.columns == ["partition", "offset"]
    assert [row.offset for row in chosen.orderBy("offset").collect()] == [
        row.offset for row in of(expected) if row.partition == 1
    ]
    reader = (
        spark.read.format("kafscale")
        .option("subscribe", "users")
        .schema("value binary, key binary")
    )
    assert sorted(map(tuple, reader.load(str(log[0].data)).collect()), key=repr) == sorted(
        ((row.value, row.key) for row in of(expected, "users")), key=repr
    )


def test_number_and_size_of_tasks(table, expected):
    def counts(**options):
        by_task = table(subscribe="users", **options).groupBy(spark_partition_id()).count()
        return [row["count"] for row in by_task.collect()]

    assert counts() == [len(of(expected, "users"))]
    assert len(counts(minPartitions="4")) >= 4
    assert max(counts(maxRecordsPerPartition="50")) <= 50
    assert sum(counts(taskBytes="1000000")) == len(of(expected, "users"))


def test_limit_stops_early(table):
    assert len(table().limit(3).collect()) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"startingOfsets": "earliest"},
            "unknown option startingofsets; did you mean startingOffsets?",
        ),
        (
            {"startingOffsets": '{"orders": {"0": 99999, "1": 0, "2": 0}}'},
            "startingOffsets: orders/0 has no offset 99999, only offsets from 0 to",
        ),
    ],
)
def test_invalid_options_are_rejected(table, options, message):
    with pytest.raises(PySparkException) as raised:
        table(**options).count()
    assert message in str(raised.value)


# --- concurrent changes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "retention_bytes", long_except(["-1", "300000"], "-1".__eq__), ids=["kept", "deleted"]
)
def test_batch_while_the_broker_rolls_and_deletes(spark, start_broker, retention_bytes):
    """Every record is read once, in order, while objects appear and disappear."""
    broker = start_broker(
        segment_bytes="50000", storage_retention_check_interval_ms="200", local_fsync="false"
    )
    client = Client(broker.address)
    client.create("orders", 2, retention_bytes=retention_bytes, compression_type="producer")
    acknowledged, ended = [0, 0], Event()

    def produce():
        while not ended.is_set():
            for partition, first in enumerate(acknowledged):
                values = [b"%d %s" % (first + number, bytes(500)) for number in range(100)]
                client.produce("orders", partition, values)
                acknowledged[partition] = first + 100
            ended.wait(0.05)

    register(spark)
    options = {"subscribe": "orders", "path": str(broker.data), "columns": "partition,offset,value"}
    if retention_bytes != "-1":
        options["failOnDataLoss"] = "false"
    with ThreadPoolExecutor(1) as threads:
        producing = threads.submit(produce)
        try:
            # Without records, a reader of the bucket may not know a new topic yet.
            wait_until(lambda: all(acknowledged), "the first records")
            for _ in range(4):
                before = list(acknowledged)
                found = spark.read.format("kafscale").options(**options).load().collect()
                for partition in range(2):
                    held = [row for row in found if row.partition == partition]
                    offsets = sorted(row.offset for row in held)
                    assert len(set(offsets)) == len(offsets)
                    assert all(row.value.startswith(b"%d " % row.offset) for row in held)
                    if retention_bytes == "-1":
                        assert offsets == list(range(len(offsets)))
                        assert len(offsets) >= before[partition]
        finally:
            ended.set()
        producing.result()
    assert broker.objects("**/orders/0/*.kfs")
    if retention_bytes != "-1":
        oldest = "**/orders/0/segment-00000000000000000000.kfs"
        wait_until(lambda: not broker.objects(oldest), "the oldest segment to go")
