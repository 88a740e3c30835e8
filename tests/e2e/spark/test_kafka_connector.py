"""Spark's own Kafka source and sink, with their default settings, against our broker.

The producers of the sink are idempotent by default. All records are compared with those that a
consumer reads.
"""

import json
import time

import pytest

from e2e.spark.records import Client, Row, rows
from kafscale.records import split
from services import spark as service

PARTITIONS = 3
COUNT = 300


@pytest.fixture(autouse=True)
def _connector():
    if not service.connector_jars():
        pytest.skip("the jars of Spark's Kafka connector cannot be fetched")


@pytest.fixture
def client(broker) -> Client:
    return Client(broker.address)


@pytest.fixture
def source(spark, broker, topic):
    """Create a batch or stream frame of the topic with Spark's source."""

    def make(*, stream=False, **options):
        reader = spark.readStream if stream else spark.read
        return (
            reader.format("kafka")
            .option("kafka.bootstrap.servers", broker.address)
            .options(subscribe=topic, includeHeaders="true", **options)
            .load()
        )

    return make


@pytest.fixture
def run_to_end(tmp_path):
    """Run a stream with a checkpoint until it has read everything; return its batches."""

    def run(frame) -> list[list[Row]]:
        batches = []
        query = (
            frame.writeStream.foreachBatch(lambda batch, _: batches.append(rows(batch)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()
        return batches

    return run


def fill(client, topic, start_ms=None):
    """Fill a topic with all kinds of records; return what a consumer reads."""
    client.create(topic, PARTITIONS)
    client.produce_mixed(topic, PARTITIONS, start_ms or time.time_ns() // 1_000_000, seed=7)
    return client.consume([topic])


def contents(found):
    """Return records without partition and offset, sorted by key and value."""
    return sorted((row.key or b"", row.value or b"", row.headers or []) for row in found)


# --- the source -----------------------------------------------------------------------------------


def test_kafka_source_batch(client, source, topic):
    expected = fill(client, topic)
    assert rows(source()) == expected
    assert source(minPartitions="7").count() == len(expected)


def test_kafka_source_batch_with_offsets(client, source, topic):
    expected = fill(client, topic)
    starts, ends = {"0": 5, "1": -2, "2": 9}, {"0": 20, "1": -1, "2": 10}
    result = rows(
        source(startingOffsets=json.dumps({topic: starts}), endingOffsets=json.dumps({topic: ends}))
    )
    limits = {0: (5, 20), 1: (0, 1_000_000), 2: (9, 10)}
    assert result == [row for row in expected if row.offset in range(*limits[row.partition])]


def test_kafka_source_batch_with_timestamps(client, source, topic):
    client.create(topic, PARTITIONS)
    start_ms = time.time_ns() // 1_000_000 - 60_000
    for second in range(60):
        client.produce(
            topic, second % PARTITIONS, [b"%d" % second], timestamp=start_ms + second * 1000
        )
    expected = client.consume([topic])
    from_ms, until_ms = start_ms + 20_000, start_ms + 40_000
    desired = [row for row in expected if from_ms <= row.timestamp_ms < until_ms]
    assert len(desired) == 20
    assert rows(source(startingTimestamp=str(from_ms), endingTimestamp=str(until_ms))) == desired
    by_partition = json.dumps({topic: dict.fromkeys(map(str, range(PARTITIONS)), from_ms)})
    assert rows(source(startingOffsetsByTimestamp=by_partition)) == [
        row for row in expected if row.timestamp_ms >= from_ms
    ]


def test_kafka_source_stream_continues_from_its_checkpoint(client, source, topic, run_to_end):
    expected = fill(client, topic)
    options = {"stream": True, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "50"}
    batches = run_to_end(source(**options))
    assert len(batches) > 2
    assert sorted(row for batch in batches for row in batch) == sorted(expected)

    client.produce(topic, 1, [b"later"] * 10)
    later = [row for batch in run_to_end(source(**options)) for row in batch]
    assert later == [row for row in client.consume([topic]) if row.value == b"later"]
    assert run_to_end(source(**options)) == []


# --- the sink -------------------------------------------------------------------------------------


def sink_columns(frame):
    """Select the columns of the sink."""
    return frame.selectExpr("key", "value", "headers", "partition")


def test_kafka_sink_batch_is_idempotent(broker, client, source, topic, wire):
    expected = fill(client, topic)
    copy = f"{topic}-copy"
    client.create(copy, PARTITIONS)
    (
        sink_columns(source())
        .write.format("kafka")
        .option("kafka.bootstrap.servers", broker.address)
        .options(topic=copy, includeHeaders="true")
        .save()
    )
    result = client.consume([copy])
    assert contents(result) == contents(expected)
    for partition in range(PARTITIONS):
        assert [row.value for row in result if row.partition == partition] == [
            row.value for row in expected if row.partition == partition
        ]
        batches = split(b"".join(wire.fetch(copy, partition=partition).records))
        assert all(batch.producer_id >= 0 for batch in batches)


def test_kafka_sink_stream(broker, client, source, topic, tmp_path):
    client.create(topic, PARTITIONS)
    values = [b"%d" % number for number in range(COUNT)]
    for partition in range(PARTITIONS):
        client.produce(topic, partition, values[partition::PARTITIONS], key=b"k%d" % partition)
    copy = f"{topic}-copy"
    client.create(copy, PARTITIONS)

    def run():
        query = (
            sink_columns(
                source(stream=True, startingOffsets="earliest", maxOffsetsPerTrigger="100")
            )
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", broker.address)
            .options(topic=copy, checkpointLocation=str(tmp_path / "sink"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()

    run()
    client.produce(topic, 0, [b"later"])
    run()
    result = client.consume([copy])
    assert contents(result) == contents(client.consume([topic]))
    assert [row.value for row in result if row.partition == 0] == [*values[::PARTITIONS], b"later"]
