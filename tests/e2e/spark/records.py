"""Records of every kind, produced by a real client, and read by a consumer and by Spark."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyspark.sql import DataFrame, SparkSession

from kafscale.spark import register
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.spark.read.location import Location
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from services.waiting import wait_until

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
VALUE_BYTES_MAX = 1024 * 1024
READ_S_MAX = 60
WAIT_S_MAX = 60


class Row(NamedTuple):
    """A record as every reader must return it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


class Client:
    """An admin client, a producer and a consumer of one broker."""

    def __init__(self, address: str) -> None:
        self._address = {"bootstrap.servers": address}
        self._admin = AdminClient(self._address)
        self._producer = self._new_producer()

    def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        config = {name.replace("_", "."): value for name, value in configs.items()}
        requested = self._admin.create_topics([NewTopic(topic, partitions, 1, config=config)])
        requested[topic].result(WAIT_S_MAX)

    def grow(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(WAIT_S_MAX)
        self._producer = (
            self._new_producer()
        )  # The old one would refresh its metadata minutes later.

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(WAIT_S_MAX)

    def _new_producer(self) -> Producer:
        return Producer(self._address | {"linger.ms": 5, "enable.idempotence": True})

    def produce(self, topic: str, partition: int, values: Iterable[bytes], **more: Any) -> None:
        """Produce in order, and wait for all acknowledgements."""
        for value in values:
            self._producer.produce(topic, value, partition=partition, **more)
            self._producer.poll(0)
        assert self._producer.flush(WAIT_S_MAX) == 0

    def produce_mixed(self, topic: str, partitions: int, start_ms: int, seed: int) -> None:
        """Produce all codecs, small and large, null keys and values, headers, unordered times.

        The producer that asks for no codec is idempotent.
        """
        random = Random(seed)
        for codec in CODECS:
            producer = Producer(
                self._address
                | {
                    "linger.ms": 20,
                    "compression.type": codec,
                    "message.max.bytes": 2 * VALUE_BYTES_MAX,
                    "enable.idempotence": codec == "none",
                }
            )
            for number, value in zip(count(), _values(random)):
                producer.produce(
                    topic,
                    value,
                    key=random.choice([None, b"", b"key", b"k%d" % number]),
                    partition=number % partitions,
                    timestamp=start_ms + random.randrange(1000),
                    headers=random.choice(
                        [None, [("one", b"1")], [("ünïcode", b""), ("none", None), ("one", b"2")]]
                    ),
                )
            assert producer.flush(WAIT_S_MAX) == 0

    def consume(self, topics: Sequence[str]) -> list[Row]:
        """Return every record of some topics, as a consumer reads them."""
        consumer = Consumer(self._address | {"group.id": "none", "enable.auto.commit": False})
        try:
            known = consumer.list_topics(timeout=WAIT_S_MAX).topics
            places = [
                TopicPartition(topic, partition, OFFSET_BEGINNING)
                for topic in topics
                for partition in known[topic].partitions
            ]
            left = 0
            for place in places:
                first, end = consumer.get_watermark_offsets(place, timeout=WAIT_S_MAX)
                left += end - first
            consumer.assign(places)
            listed = list(_consumed(consumer, left))
        finally:
            consumer.close()
        return sorted(listed, key=lambda row: row[:3])


def rows(frame: DataFrame) -> list[Row]:
    """Return every record of a frame with all columns."""
    chosen = frame.selectExpr(
        "topic",
        "partition",
        "offset",
        "unix_millis(timestamp)",
        "timestampType",
        "key",
        "value",
        "headers",
    )
    result = [
        Row(*row[:-1], None if row[-1] is None else [tuple(header) for header in row[-1]])
        for row in chosen.collect()
    ]
    return sorted(result, key=lambda row: row[:3])


def list_offsets(location: Location) -> OffsetMap:
    with location.open() as store:
        return list_bucket(store, location.namespace)


def wait_for_catalog(location: Location, topic: str) -> None:
    """Wait until the topic catalog lists a topic, which the broker writes in the background."""
    wait_until(lambda: topic in list_offsets(location).catalog, f"{topic} in the catalog")


@contextmanager
def s3a(spark: SparkSession, bucket: S3Bucket) -> Iterator[None]:
    """Configure S3A access to a bucket in a session."""
    settings = {
        "spark.hadoop.fs.s3a.endpoint": bucket.endpoint,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": bucket.access_key,
        "spark.hadoop.fs.s3a.secret.key": bucket.secret_key,
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        register(spark)
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)
        register(spark)


def _values(random: Random) -> Iterator[bytes | None]:
    yield from [b"", None, b"x", random.randbytes(VALUE_BYTES_MAX - 1000)]
    for size in [*range(0, 100, 7), 1_000, 10_000, 100_000]:
        yield random.randbytes(size // 2) + bytes(size - size // 2)
        yield b"%d" % size


def _consumed(consumer: Consumer, left: int) -> Iterator[Row]:
    deadline = time.monotonic() + READ_S_MAX
    while left:
        assert time.monotonic() < deadline, f"{left} records are missing"
        for message in consumer.consume(min(left, 1000), 0.2):
            assert message.error() is None, message.error()
            left -= 1
            kind, timestamp_ms = message.timestamp()
            yield Row(
                message.topic(),
                message.partition(),
                message.offset(),
                timestamp_ms,
                kind - 1,  # 0 is none for the client, and the producer's for Kafka.
                message.key(),
                message.value(),
                message.headers(),
            )
