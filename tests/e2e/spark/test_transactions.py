"""Spark and its jobs on topics with transactions, compared with consumers of committed records."""

import json
from random import Random

import pytest
from confluent_kafka import Producer

from e2e.spark.keyed_topic import PARTITIONS, TOPIC, KeyedTopic, ReadRecord
from e2e.spark.orders_broker import call
from e2e.spark.records import rows
from e2e.spark.test_compact import compacted
from e2e.spark.test_merge import merged
from e2e.spark.test_streaming import Stream
from kafscale.spark import register
from services.committed_records import read_messages

FAST = {
    "local_fsync": "false",
    "group_initial_rebalance_delay_ms": "0",
    "compaction_enabled": "false",
}
CODECS = ["none", "lz4", "zstd"]
WAIT_S = 60


class Transactions:
    """Producers that write to both partitions in transactions, some of which they abort."""

    def __init__(self, topic: KeyedTopic) -> None:
        self._topic = topic
        self._random = Random(0)
        self._number = 0
        self._producers = [self._new(number) for number in range(3)]
        self.opened: set[int] = set()

    def _new(self, number: int) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._topic.broker.address,
                "transactional.id": f"writer-{number}",
                "compression.type": CODECS[number],
                "linger.ms": 1,
            }
        )
        producer.init_transactions(WAIT_S)
        return producer

    def begin(self, number: int) -> None:
        self._producers[number].begin_transaction()
        self.opened.add(number)

    def write(self, number: int, count: int = 5) -> None:
        producer = self._producers[number]
        for _ in range(count):
            self._number += 1
            key = self._random.choice([b"a", b"b", b"c", b"d"])
            value = b"%d of %d" % (self._number, number)
            producer.produce(TOPIC, value, key, partition=self._random.randrange(PARTITIONS))
        assert producer.flush(WAIT_S) == 0

    def end(self, number: int, *, is_commit: bool) -> None:
        producer = self._producers[number]
        if is_commit:
            producer.commit_transaction(WAIT_S)
        else:
            producer.abort_transaction(WAIT_S)
        self.opened.discard(number)

    def run(self, count: int) -> None:
        """Interleave transactions with each other and with plain records; leave some open."""
        for _ in range(count):
            number = self._random.randrange(3)
            if number not in self.opened:
                self.begin(number)
            self.write(number)
            if self._random.random() < 0.2:
                self._topic.write(5)
            if self._random.random() < 0.5:
                self.end(number, is_commit=self._random.random() < 0.5)
            if self._random.random() < 0.15:
                self._topic.flush()
        if not self.opened:
            self.begin(0)
            self.write(0)
        self._topic.write(5)

    def end_all(self) -> None:
        for number in sorted(self.opened):
            self.end(number, is_commit=number % 2 == 0)


def consumed(topic: KeyedTopic, isolation: str = "read_committed", name: str = TOPIC):
    found = read_messages(topic.broker.address, name, isolation=isolation)
    return [
        ReadRecord(partition, message.offset(), message.key(), message.value())
        for partition, messages in found.items()
        for message in messages
    ]


def with_spark(spark, topic: KeyedTopic, **options: str):
    register(spark)
    chosen = {"subscribe": TOPIC, "includeHeaders": "true"} | options
    table = spark.read.format("kafscale").options(**chosen).load(str(topic.broker.data))
    return [ReadRecord(row.partition, row.offset, row.key, row.value) for row in rows(table)]


def check(spark, topic: KeyedTopic) -> None:
    assert with_spark(spark, topic) == consumed(topic)
    everything = consumed(topic, "read_uncommitted")
    assert with_spark(spark, topic, **{"kafka.isolation.level": "read_uncommitted"}) == everything


@pytest.fixture
def topic(start_broker):
    return KeyedTopic(start_broker(**FAST))


@pytest.fixture
def transactions(topic):
    return Transactions(topic)


def test_source_returns_what_consumers_of_committed_records_read(spark, topic, transactions):
    for _ in range(3):
        transactions.run(12)
        check(spark, topic)
    topic.broker.kill()
    topic.broker.start()
    check(spark, topic)
    assert len(consumed(topic)) < len(consumed(topic, "read_uncommitted"))


def test_stream_neither_skips_nor_repeats_around_open_transactions(
    spark, topic, transactions, tmp_path
):
    register(spark)
    stream = Stream(
        spark,
        topic.broker.data,
        tmp_path / "checkpoint",
        subscribe=TOPIC,
        startingOffsets="earliest",
    )
    for _ in range(3):
        transactions.run(8)
        stream.run()
    transactions.end_all()
    stream.run()
    seen = [(partition, offset) for _, _, partition, offset in stream.seen]
    assert sorted(seen) == [(each.partition, each.offset) for each in consumed(topic)]


def test_jobs_keep_transactions(spark, topic, transactions):
    transactions.run(30)
    topic.flush()
    topic.write(10)
    topic.flush()
    before = consumed(topic)
    merged(spark, topic)
    assert consumed(topic) == before
    check(spark, topic)
    transactions.end_all()
    topic.write(10)
    topic.flush()
    full = consumed(topic)
    latest = {(each.partition, each.key): each for each in full}
    compacted(spark, topic, is_forced=True)
    assert consumed(topic) == sorted(latest.values())
    check(spark, topic)
    compacted(spark, topic, is_forced=True, later_ms=2 * 86_400_000)  # It sets horizons.
    compacted(spark, topic, is_forced=True, later_ms=4 * 86_400_000)
    kept = {each for each in latest.values() if each.value is not None}
    assert kept <= set(consumed(topic)) <= set(latest.values())
    check(spark, topic)
    topic.broker.kill()
    topic.broker.start()
    check(spark, topic)
    transactions.run(5)
    transactions.end_all()
    check(spark, topic)


@pytest.mark.usefixtures("spark")
def test_copies_have_committed_records_and_no_transactions(topic, transactions):
    transactions.run(20)
    committed = consumed(topic)
    opened, address = sorted(transactions.opened), topic.broker.address
    for name, command in {
        "replayed": ["replay", TOPIC, "replayed"],
        f"copy-{TOPIC}": ["mirror", "--from", address, "--topic", TOPIC, "--prefix", "copy-"],
    }.items():
        result = call(topic.broker, *command)
        assert result.exit_code == 0, result.output
        assert values(consumed(topic, name=name)) == values(committed)
    result = call(topic.broker, "restore", TOPIC, "restored")
    assert result.exit_code == 0, result.output
    restored = values(consumed(topic, name="restored"))
    assert restored == values(consumed(topic, "read_uncommitted", name="restored"))
    for number in opened:
        transactions.end(number, is_commit=False)
    assert restored == values(consumed(topic))  # Also those behind the open transactions.
    findings = json.loads(call(topic.broker, "scrub").stdout)["findings"]
    assert not [each for each in findings if each["isDamage"]]


def values(records):
    return [(each.partition, each.key, each.value) for each in records]
