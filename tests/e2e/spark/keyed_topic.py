"""A compacted topic, the records written to it, and several clients that read it."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from random import Random
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition

from e2e.spark.records import list_offsets, wait_for_catalog
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.read.location import Location
from services import java
from services.broker import BrokerProcess
from services.shell import Shell

TOPIC = "customers"
PARTITIONS = 2
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
KEY_COUNT = 60
WAIT_S = 60


class ReadRecord(NamedTuple):
    """A record as a client reads it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class KeyedTopic:
    """A topic of a broker, and the records written to it."""

    def __init__(
        self, broker: BrokerProcess, location: Location | None = None, **configs: str
    ) -> None:
        """Create the topic; by default, records are in the data directory of the broker."""
        self.broker = broker
        self.control = (broker.control_address,)
        self.shell = Shell(broker.address, control_servers=self.control[0])
        self.location = location or Location.parse(str(broker.data))
        self.written: list[ReadRecord] = []
        self._random = Random(0)
        named = {name.replace("_", "."): value for name, value in configs.items()}
        admin = AdminClient({"bootstrap.servers": broker.address})
        config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"} | named
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=config)])[TOPIC].result(WAIT_S)
        self.wait_for(TOPIC)

    def wait_for(self, name: str) -> None:
        wait_for_catalog(self.location, name)

    def list_offsets(self) -> OffsetMap:
        return list_offsets(self.location)

    def write(self, count: int = 200, *, codec: str = "none") -> None:
        """Write random records: few keys, some tombstones, values of all sizes."""
        producer = Producer(
            {
                "bootstrap.servers": self.broker.address,
                "enable.idempotence": True,
                "compression.type": codec,
                "linger.ms": 2,
                "batch.num.messages": 20,
            }
        )
        for _ in range(count):
            key = b"key %d" % self._random.randrange(KEY_COUNT)
            value = self._random.randbytes(self._random.choice([0, 3, 50, 2000]))
            self.send(producer, key, None if self._random.random() < 0.1 else value)
        assert producer.flush(WAIT_S) == 0

    def send(self, producer: Producer, key: bytes | None, value: bytes | None) -> None:
        partition = self._random.randrange(PARTITIONS)

        def note(error, message) -> None:
            assert error is None, error
            self.written.append(ReadRecord(partition, message.offset(), key, value))

        producer.produce(TOPIC, value, key, partition, on_delivery=note)
        producer.poll(0)

    def fill(self) -> None:
        """Write segments of every codec, several for each partition."""
        for codec in CODECS:
            self.write(codec=codec)
            self.flush()

    def flush(self) -> None:
        self.shell("cluster", "flush", "--topic", TOPIC)

    def latest(self) -> list[ReadRecord]:
        """Return what compaction keeps: the last record of each key, and all without a key."""
        newest = {(seen.partition, seen.key): seen.offset for seen in sorted(self.written)}
        return [
            seen
            for seen in sorted(self.written)
            if seen.key is None or newest[seen.partition, seen.key] == seen.offset
        ]

    def segment_keys(self) -> list[str]:
        return [
            extent.key
            for (topic, _), result in self.list_offsets().partitions.items()
            for extent in result.extents
            if topic == TOPIC and not extent.is_wal
        ]

    def staged_keys(self) -> list[str]:
        with self.location.open() as store:
            return [item.key for item in store.list(f"{self.location.namespace}/_staging/")]


# --- faults ---------------------------------------------------------------------------------------


class KilledError(Exception):
    """Stops a job as if it had been killed."""


def killed_after(steps: int, job: Callable[[Callable[[str], None]], object]) -> bool:
    """Run a job and kill it after a number of steps; return whether it got that far."""
    left = [steps]

    def on_step(step: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError(step)

    try:
        job(on_step)
    except KilledError:
        return True
    return False


# --- readers --------------------------------------------------------------------------------------


def with_librdkafka(topic: KeyedTopic) -> list[ReadRecord]:
    settings = {
        "bootstrap.servers": topic.broker.address,
        "group.id": "none",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    with closing(consumer):
        consumer.assign(
            [TopicPartition(TOPIC, number, OFFSET_BEGINNING) for number in range(PARTITIONS)]
        )
        result, ended = [], set()
        while len(ended) < PARTITIONS:
            message = consumer.poll(WAIT_S)
            assert message is not None, "it does not come to the end"
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF
                ended.add(message.partition())
            else:
                result.append(
                    ReadRecord(
                        message.partition(), message.offset(), message.key(), message.value()
                    )
                )
    return sorted(result)


def with_kafka_python(topic: KeyedTopic) -> list[ReadRecord]:
    places = [PythonPartition(TOPIC, number) for number in range(PARTITIONS)]
    settings = {"bootstrap_servers": topic.broker.address, "group_id": None}
    with closing(KafkaConsumer(**settings)) as consumer:
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        ends = consumer.end_offsets(places)
        result = []
        deadline = time.monotonic() + WAIT_S
        while any(consumer.position(place) < ends[place] for place in places):
            assert time.monotonic() < deadline, "it does not come to the end"
            for place, records in consumer.poll(timeout_ms=500).items():
                result += [
                    ReadRecord(place.partition, each.offset, each.key, each.value)
                    for each in records
                ]
    return sorted(result)


def with_aiokafka(topic: KeyedTopic) -> list[ReadRecord]:
    async def read() -> list[ReadRecord]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=topic.broker.address, auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            places = [AioPartition(TOPIC, number) for number in range(PARTITIONS)]
            consumer.assign(places)
            ends = await consumer.end_offsets(places)
            result = []
            async with asyncio.timeout(WAIT_S):
                while any([await consumer.position(place) < ends[place] for place in places]):
                    for place, records in (await consumer.getmany(timeout_ms=500)).items():
                        result += [
                            ReadRecord(place.partition, each.offset, each.key, each.value)
                            for each in records
                        ]
            return sorted(result)
        finally:
            await consumer.stop()

    return asyncio.run(read())


def with_kafscale_consume(topic: KeyedTopic) -> list[ReadRecord]:
    printed = topic.shell("consume", TOPIC, "-e", "-f", "hex", "-t", "%p %o %k %v")
    result = [line.split(" ") for line in printed.splitlines()]
    return sorted(
        ReadRecord(int(partition), int(offset), _unhex(key), _unhex(value))
        for partition, offset, key, value in result
    )


def with_java(topic: KeyedTopic) -> list[ReadRecord]:
    """Kafka's console consumer; it needs the number of records."""
    count = len(topic.latest())
    serializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    printed = java.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "--bootstrap-server",
        topic.broker.address,
        "--topic",
        TOPIC,
        "--from-beginning",
        "--max-messages",
        str(count),
        "--timeout-ms",
        "30000",
        "--property",
        "print.key=true",
        "--property",
        "print.value=false",
        "--property",
        "print.partition=true",
        "--property",
        "print.offset=true",
        "--key-deserializer",
        "org.apache.kafka.common.serialization.StringDeserializer",
        "--value-deserializer",
        serializer,
    )
    values = {seen[:3]: seen.value for seen in topic.written}
    result = []
    for line in printed.splitlines():
        partition, offset, key = (part.rpartition(":")[2] for part in line.split("\t"))
        place = (int(partition), int(offset), key.encode())
        result.append(ReadRecord(*place, values[place]))
    return sorted(result)


READERS: dict[str, Callable[[KeyedTopic], list[ReadRecord]]] = {
    "librdkafka": with_librdkafka,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
    "kafscale": with_kafscale_consume,
}


@contextmanager
def group_consumer(topic: KeyedTopic, group: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": topic.broker.address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    with closing(consumer):
        consumer.subscribe([TOPIC])
        yield consumer


def consume_and_commit(consumer: Consumer, count: int) -> list[ReadRecord]:
    """Read the next `count` records of a group, and commit them."""
    result = []
    while len(result) < count:
        message = consumer.poll(WAIT_S)
        if message is None:
            places = consumer.assignment()
            raise AssertionError(f"nothing comes: {places} at {consumer.position(places)}")
        assert message.error() is None, message.error()
        result.append(
            ReadRecord(message.partition(), message.offset(), message.key(), message.value())
        )
        consumer.commit(message, asynchronous=False)
    return result


def _unhex(text: str) -> bytes | None:
    return None if text == "null" else bytes.fromhex(text)
