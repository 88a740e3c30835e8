"""Tests of mirroring Apache Kafka to Kafscale and back."""

from itertools import count

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from kafscale.errors import InvalidRequestError, UnknownTopicError
from kafscale.spark.jobs.mirror import job
from kafscale.spark.jobs.mirror.cluster import Cluster
from kafscale.spark.jobs.mirror.job import Mirror, MirrorSettings
from kafscale.spark.jobs.mirror.offset_mapping import MIRROR_HEADER, Origin
from kafscale.spark.jobs.mirror.task import mirror_partitions
from services import java
from services.broker import BrokerProcess
from services.kafka_records import Sent, create, produce, read
from services.kafka_server import KafkaServer
from services.killed_process import kill_at_step
from services.selection import long_except
from services.waiting import wait_until

START_MS = 1_700_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS = 3
KEPT = {"retention_ms": "-1"}
WAIT_S_MAX = 30
KAFKA_SETTINGS = {
    # By default each of the two topics has 50 partitions, which take long to create and load.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.coordinator.append.linger.ms": "0",
}

numbers = count()

pytestmark = pytest.mark.skipif(not java.is_available(), reason="there is no Java, or no Maven")


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("broker"), segment_bytes="65536") as running:
        yield running


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    with KafkaServer(tmp_path_factory.mktemp("kafka"), KAFKA_SETTINGS) as running:
        create(running.address, "mixed", PARTITIONS, max_message_bytes="2000000", **KEPT)
        for number, codec in enumerate(CODECS):
            produce(running.address, "mixed", mixed(START_MS + number * 1000), codec=codec)
        yield running


def mixed(start_ms):
    for number in range(90):
        yield Sent(
            number % PARTITIONS,
            [None, b"", b"key-%d" % number][number % 4 % 3],
            [b"value" * number, None, b""][number % 5 % 3],
            start_ms + number,
            (("one", b"1"), ("none", None), ("one", b"")) if number % 6 == 0 else (),
        )
    yield Sent(1, b"large", bytes(range(256)) * 4096, start_ms + 500)


def simple(count, partition=0, start=0):
    return [Sent(partition, b"%d" % n, b"v", START_MS + n) for n in range(start, start + count)]


@pytest.fixture
def topic(kafka):
    """A topic of the source cluster."""
    name = f"topic-{next(numbers)}"
    create(kafka.address, name, 1, **KEPT)
    return name


@pytest.fixture
def settings(kafka, broker):
    def make(*topics, **more):
        clusters = {"source": Cluster(kafka.address), "target": Cluster(broker.address)}
        return MirrorSettings(topics=topics, **(clusters | more))

    return make


def share(items):
    return [mirror_partitions(item) for item in items]


def mirrored(settings):
    return Mirror(settings, 2).mirror_once(share)


def without_mirror_headers(found):
    """Return records without mirror headers, topic and offset."""
    return {
        partition: [
            record._replace(
                offset=offset, headers=tuple(h for h in record.headers if h[0] != MIRROR_HEADER)
            )
            for offset, record in enumerate(records)
        ]
        for partition, records in found.items()
    }


def test_mirror_there_and_back_keeps_records(kafka, broker, settings):
    source = read(kafka.address, "mixed")
    assert mirrored(settings("mixed")) == 5 * 91
    there = read(broker.address, "mixed")
    assert without_mirror_headers(there) == source
    assert [Origin.last_of(record.headers).offset for record in there[0]] == [
        record.offset for record in source[0]
    ]
    back = settings(
        "mixed", source=Cluster(broker.address), target=Cluster(kafka.address), prefix="back."
    )
    assert mirrored(back) == 5 * 91
    assert without_mirror_headers(read(kafka.address, "back.mixed")) == source
    assert mirrored(settings("mixed")) == mirrored(back) == 0


def test_records_are_not_mirrored_back_to_their_topic(kafka, broker, settings, topic):
    produce(kafka.address, topic, simple(10))
    mirrored(settings(topic))
    produce(broker.address, topic, simple(2, start=10))
    back = settings(topic, source=Cluster(broker.address), target=Cluster(kafka.address))
    assert mirrored(back) == 2
    assert mirrored(settings(topic)) == 0
    assert mirrored(back) == 0
    assert without_mirror_headers(read(kafka.address, topic)) == without_mirror_headers(
        read(broker.address, topic)
    )


@pytest.mark.parametrize("step", long_except([1, 2, 3, 4, 5], (3).__eq__))
def test_killed_mirror_continues_exactly_once(kafka, broker, settings, topic, step):
    """Killed at each step: opened, produced, produced, flushed, committed."""
    produce(kafka.address, topic, simple(900))
    job_settings = settings(topic)
    mirrored(job_settings)
    produce(kafka.address, topic, simple(700, start=900))
    (item,) = Mirror(job_settings, 1).plan()
    assert kill_at_step(mirror_partitions, item, step)
    mirrored(job_settings)
    assert without_mirror_headers(read(broker.address, topic)) == read(kafka.address, topic)


@pytest.mark.long
def test_aborted_records_are_skipped_and_offsets_translated(kafka, broker, settings, topic):
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        for each in range(10):
            producer.produce(topic, b"%d-%d" % (number, each), timestamp=START_MS, partition=0)
        if number % 2:
            producer.flush()
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    source = read(kafka.address, topic)[0]
    assert [each.value for each in source] == [
        b"%d-%d" % (n, each) for n in (0, 2, 4) for each in range(10)
    ]
    job_settings = settings(topic)
    assert mirrored(job_settings) == 30
    there = read(broker.address, topic)[0]
    assert [each.value for each in there] == [each.value for each in source]
    by_value = {each.value: each.offset for each in there}
    for place in (source[0], source[7], source[10], source[25]):
        commit(kafka.address, group := f"group-{next(numbers)}", topic, place.offset)
        job.run_translation(job_settings, group)
        assert committed(broker.address, group, topic) == by_value[place.value]
    commit(kafka.address, "group-at-a-gap", topic, source[9].offset + 3)
    job.run_translation(job_settings, "group-at-a-gap")
    assert committed(broker.address, "group-at-a-gap", topic) == by_value[source[10].value]


def test_open_transactions_are_waited_for(kafka, broker, settings, topic):
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"in time", timestamp=START_MS)
    producer.flush()
    passes = Mirror(settings(topic), 1)
    assert passes.mirror_once(share) == 0
    producer.commit_transaction()
    # Kafka acknowledges the commit before it writes the marker to the partition.
    wait_until(lambda: passes.mirror_once(share) == 1, "what was committed")
    assert [each.value for each in read(broker.address, topic)[0]] == [b"in time"]


def test_transactions_written_during_a_pass_are_left_to_the_next(kafka, broker, settings, topic):
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions()
    steps = count()

    def write(*values):
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, timestamp=START_MS)
        producer.commit_transaction()

    def write_and_go_on(_step):
        if next(steps) < 8:
            write(b"later", b"later")

    write(b"first")
    passes = Mirror(settings(topic), 1)
    while passes.mirror_once(
        lambda items: [mirror_partitions(item, write_and_go_on) for item in items]
    ):
        pass
    source, target = (read(each.address, topic)[0] for each in (kafka, broker))
    assert [each.value for each in source] == [b"first"] + 16 * [b"later"]
    assert [each.value for each in target] == [each.value for each in source]


def test_group_offsets_never_move_back(kafka, broker, settings, topic):
    produce(kafka.address, topic, simple(20))
    job_settings = settings(topic)
    mirrored(job_settings)
    commit(kafka.address, "forward", topic, 5)
    assert job.run_translation(job_settings, "forward").facts["moved"] == 1
    commit(broker.address, "forward", topic, 9)
    assert job.run_translation(job_settings, "forward").facts["moved"] == 0
    assert committed(broker.address, "forward", topic) == 9
    with pytest.raises(UnknownTopicError, match="has committed no offsets"):
        job.run_translation(job_settings, "absent")


def test_records_deleted_in_the_target_are_not_written_again(kafka, broker, settings, topic):
    produce(kafka.address, topic, simple(20))
    mirrored(settings(topic))
    delete_records(broker.address, topic, 20)
    produce(kafka.address, topic, simple(3, start=20))
    assert mirrored(settings(topic)) == 3
    assert [each.key for each in read(broker.address, topic)[0]] == [b"20", b"21", b"22"]


def test_records_lost_in_the_source_are_reported(kafka, settings, topic):
    produce(kafka.address, topic, simple(20))
    mirrored(settings(topic))
    produce(kafka.address, topic, simple(10, start=20))
    delete_records(kafka.address, topic, 27)
    passes = Mirror(settings(topic), 1)
    assert passes.mirror_once(share) == 3
    summary = job.summarize(passes.totals.values(), 1, 0.0)
    assert summary.facts["lost"] == 7


def test_a_recreated_source_topic_is_rejected(kafka, settings, topic):
    produce(kafka.address, topic, simple(20))
    mirrored(settings(topic))
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.delete_topics([topic])[topic].result(WAIT_S_MAX)
    create(kafka.address, topic, 1)
    # Kafka serves the deleted topic, or none, until its broker has applied both changes.
    wait_until(lambda: end_offset(kafka.address, topic) == 0, "the new topic")
    with pytest.raises(InvalidRequestError, match="created again"):
        mirrored(settings(topic))


def test_target_topics_get_configs_and_partitions_of_the_source(kafka, broker, settings):
    create(kafka.address, "grows", 1, cleanup_policy="compact", retention_ms="123456")
    job_settings = settings("grows")
    mirrored(job_settings)
    assert configs(broker.address, "grows", "cleanup.policy", "retention.ms") == [
        "compact",
        "123456",
    ]
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.create_partitions([NewPartitions("grows", 3)])["grows"].result(WAIT_S_MAX)
    produce(kafka.address, "grows", simple(5, partition=2))
    assert mirrored(job_settings) == 5
    assert [len(records) for records in read(broker.address, "grows").values()] == [0, 0, 5]


def test_a_missing_topic_is_rejected(settings):
    with pytest.raises(UnknownTopicError, match="no topic absent"):
        mirrored(settings("absent"))


def test_pattern_is_mirrored_until_interrupted(kafka, broker, settings, spark):
    create(kafka.address, "shop.orders", 2, **KEPT)
    produce(kafka.address, "shop.orders", simple(10))
    rests = []

    def sleep(_seconds):
        rests.append(len(rests))
        if rests == [0]:
            produce(kafka.address, "shop.orders", simple(5, partition=1))
            create(kafka.address, "shop.users", 1, **KEPT)
            produce(kafka.address, "shop.users", simple(7))
        if len(rests) == 3:
            raise KeyboardInterrupt

    job_settings = settings(pattern=r"shop\..*", interval_s=1.0)
    messages = []
    summary = job.run(spark, job_settings, progress=False, sleep=sleep, notify=messages.append)
    assert messages == ["pass 1: 10 records", "pass 2: 12 records", "pass 3: 0 records"]
    assert (summary.facts["passes"], summary.facts["records"]) == (3, 22)
    for topic in ("shop.orders", "shop.users"):
        assert without_mirror_headers(read(broker.address, topic)) == read(kafka.address, topic)


# --- groups, configs, deletion --------------------------------------------------------------------


def consumer_of(address, group):
    return Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False})


def commit(address, group, topic, offset):
    consumer = consumer_of(address, group)
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(address, group, topic):
    consumer = consumer_of(address, group)
    (result,) = consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_S_MAX)
    consumer.close()
    return result.offset


def delete_records(address, topic, offset):
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(WAIT_S_MAX)


def end_offset(address, topic):
    """Return the end offset of partition 0, or None if there is none."""
    consumer = consumer_of(address, "none")
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)[1]
    except KafkaException:
        return None
    finally:
        consumer.close()


def configs(address, topic, *names):
    from confluent_kafka.admin import ConfigResource, ResourceType

    admin = AdminClient({"bootstrap.servers": address})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    result = admin.describe_configs([resource])[resource].result(WAIT_S_MAX)
    return [result[name].value for name in names]
