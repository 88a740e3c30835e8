"""`spark.readStream.format("kafscale")` reads every record exactly once."""

import json
import shutil
import time
from pathlib import Path

import pytest

from e2e.spark.records import Client, s3a
from kafscale.spark import register
from services.s3_server import broker_settings
from services.waiting import wait_until

SMALL_SEGMENTS = {
    "segment_bytes": "20000",
    "storage_retention_check_interval_ms": "200",
    "local_fsync": "false",
}
PATIENCE_S = 120


class Stream:
    """A stream of a log, its checkpoint, and the records that it has returned."""

    def __init__(self, spark, path, checkpoint: Path, **options: str) -> None:
        self._spark = spark
        self._options = {"path": str(path), "columns": "topic,partition,offset,value"} | options
        self._checkpoint = checkpoint
        self.seen = []
        """The micro-batch, partition and offset of each record."""
        self.steps = []
        self.values = {}
        self.query = None

    def start(self, *, is_once=False, **options):
        reader = self._spark.readStream.format("kafscale").options(**self._options | options)
        writer = reader.load().writeStream.foreachBatch(self._take)
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        if is_once:
            writer = writer.trigger(availableNow=True)
        self.query = writer.start()
        return self.query

    def run(self, **options):
        """Read everything available, and stop."""
        query = self.start(is_once=True, **options)
        assert query.awaitTermination(PATIENCE_S)

    def stop(self):
        if self.query is not None:
            self.query.stop()

    @property
    def offsets(self):
        """Return the offsets that were read, by topic and partition, in order."""
        result = {}
        for _, topic, partition, offset in self.seen:
            result.setdefault((topic, partition), []).append(offset)
        return result

    def _take(self, frame, step):
        rows = frame.collect()
        self.steps.append((step, len(rows)))
        for row in sorted(rows, key=lambda row: (row.topic, row.partition, row.offset)):
            self.seen.append((step, row.topic, row.partition, row.offset))
            self.values[row.topic, row.partition, row.offset] = row.value


@pytest.fixture
def stream(spark, tmp_path):
    """Create streams; all are stopped at the end."""
    register(spark)
    created = []

    def make(path, **options):
        checkpoint = tmp_path / f"checkpoint-{len(created)}"
        created.append(Stream(spark, path, checkpoint, **options))
        return created[-1]

    yield make
    for one in created:
        one.stop()


@pytest.fixture
def broker(start_broker):
    return start_broker(**SMALL_SEGMENTS)


def values(start, end, size=200):
    return [b"%d " % number + bytes(size) for number in range(start, end)]


def test_stream_with_limits_and_restarts(broker, stream):
    client = Client(broker.address)
    client.create("orders", 3)
    for partition in range(3):
        client.produce("orders", partition, values(0, 400))
    reading = stream(broker.data, subscribe="orders", startingOffsets="earliest")
    reading.run(maxOffsetsPerTrigger="500")
    assert reading.steps == [(0, 498), (1, 498), (2, 204)]
    client.produce("orders", 1, values(400, 450))
    reading.run(maxOffsetsPerTrigger="500")
    assert reading.steps[3:] == [(3, 50)]
    reading.run()
    assert reading.steps[4:] == []
    assert reading.offsets == {
        ("orders", 0): list(range(400)),
        ("orders", 1): list(range(450)),
        ("orders", 2): list(range(400)),
    }
    assert all(value.startswith(b"%d " % place[2]) for place, value in reading.values.items())


@pytest.mark.long
def test_uncommitted_batch_is_repeated(broker, stream, tmp_path):
    """It reads the same records again, up to the end in the checkpoint."""
    client = Client(broker.address)
    client.create("orders", 2)
    client.produce("orders", 0, values(0, 100))
    reading = stream(broker.data, subscribe="orders", startingOffsets="earliest")
    reading.run(maxOffsetsPerTrigger="60")
    first = list(reading.seen)
    (tmp_path / "checkpoint-0/commits/1").unlink()
    (tmp_path / "checkpoint-0/commits/.1.crc").unlink()
    client.produce("orders", 0, values(100, 130))
    reading.run()
    assert reading.seen[len(first) :] == [
        *[row for row in first if row[0] == 1],
        *[(2, "orders", 0, offset) for offset in range(100, 130)],
    ]


@pytest.mark.long
def test_stream_from_latest_misses_nothing(broker, stream, tmp_path):
    """Also if the first micro-batch fails and records arrive meanwhile."""
    client = Client(broker.address)
    client.create("orders", 2)
    client.produce("orders", 0, values(0, 100))
    reading = stream(broker.data, subscribe="orders")
    reading.run()
    assert reading.steps == [(0, 0)]
    shutil.rmtree(tmp_path / "checkpoint-0/commits")
    client.produce("orders", 0, values(100, 150))
    reading.run()
    assert reading.offsets == {("orders", 0): list(range(100, 150))}


def test_stream_reads_new_topics_and_partitions(broker, stream):
    client = Client(broker.address)
    client.create("orders-a", 1)
    client.produce("orders-a", 0, values(0, 10))
    reading = stream(broker.data, subscribePattern="orders-.*", startingOffsets="latest")
    query = reading.start()
    wait_until(lambda: reading.steps, "the first step", seconds_max=PATIENCE_S)
    client.grow("orders-a", 2)
    client.create("orders-b", 2)
    client.create("other", 1)
    client.produce("orders-a", 0, values(10, 30))
    client.produce("orders-a", 1, values(0, 20))
    client.produce("orders-b", 1, values(0, 15))
    client.produce("other", 0, values(0, 5))
    query.processAllAvailable()
    client.produce("orders-b", 0, values(0, 5))
    query.processAllAvailable()
    assert reading.offsets == {
        ("orders-a", 0): list(range(10, 30)),
        ("orders-a", 1): list(range(20)),
        ("orders-b", 0): list(range(5)),
        ("orders-b", 1): list(range(15)),
    }
    reached = json.loads(query.lastProgress["sources"][0]["endOffset"])
    assert reached == {"orders-a": {"0": 30, "1": 20}, "orders-b": {"0": 5, "1": 15}}


@pytest.mark.long
def test_stream_reports_records_deleted_by_retention(broker, stream):
    client = Client(broker.address)
    client.create("orders", 1, retention_bytes="60000", compression_type="producer")
    client.produce("orders", 0, values(0, 10))
    reading = stream(broker.data, subscribe="orders", startingOffsets="earliest")
    reading.run()
    for start in range(10, 1010, 100):
        client.produce("orders", 0, values(start, start + 100))
    first = broker.data / "objects/default/orders/0/segment-00000000000000000000.kfs"
    wait_until(lambda: not first.exists(), "retention")
    with pytest.raises(Exception, match=r"offsets 10 to \d+ of orders/0 were deleted by retention"):
        reading.run()
    reading.run(failOnDataLoss="false")
    offsets = reading.offsets["orders", 0]
    assert offsets[:10] == list(range(10))
    assert offsets[10] > 10
    assert offsets[10:] == list(range(offsets[10], 1010))


def test_stream_reports_a_recreated_topic(broker, stream):
    client = Client(broker.address)
    client.create("orders", 1)
    client.produce("orders", 0, values(0, 100))
    reading = stream(broker.data, subscribe="orders", startingOffsets="earliest")
    reading.run()
    client.delete("orders")
    directory = broker.data / "objects/default/orders"
    wait_until(lambda: not list(directory.glob("**/*.kfs")), "the deletion")
    client.create("orders", 1)
    client.produce("orders", 0, [b"new %d" % number for number in range(30)])
    with pytest.raises(Exception, match="orders/0 was recreated"):
        reading.run()
    reading.values.clear()
    reading.run(failOnDataLoss="false")
    assert reading.values == {("orders", 0, number): b"new %d" % number for number in range(30)}


@pytest.mark.long
def test_stream_while_a_broker_rolls(broker, stream):
    client = Client(broker.address)
    client.create("orders", 2, compression_type="producer")
    reading = stream(broker.data, subscribe="orders", startingOffsets="earliest")
    query = reading.start(maxOffsetsPerTrigger="700")
    for start in range(0, 2000, 50):
        client.produce("orders", 0, values(start, start + 50))
        client.produce("orders", 1, values(start, start + 50))
        time.sleep(0.05)
    query.processAllAvailable()
    assert len(broker.objects("**/orders/0/*.kfs")) > 5
    assert len(reading.steps) > 3
    assert reading.offsets == {("orders", 0): list(range(2000)), ("orders", 1): list(range(2000))}
    assert all(value.startswith(b"%d " % place[2]) for place, value in reading.values.items())


@pytest.mark.long
def test_stream_from_a_bucket(spark, start_broker, s3, stream):
    broker = start_broker(**broker_settings(s3.bucket), storage_wal_puts_per_second="1000")
    client = Client(broker.address)
    client.create("orders", 2)
    client.produce("orders", 0, values(0, 300))
    reading = stream(
        f"s3://{s3.bucket.name}/default", subscribe="orders", startingOffsets="earliest"
    )
    with s3a(spark, s3.bucket):
        reading.run()
        client.produce("orders", 1, values(0, 50))
        reading.run()
    assert reading.offsets == {("orders", 0): list(range(300)), ("orders", 1): list(range(50))}
    assert reading.steps == [(0, 300), (1, 50)]
