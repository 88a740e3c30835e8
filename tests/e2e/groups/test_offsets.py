"""Committed offsets: where consumers start and continue, and commits of non-members."""

import time
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from services import java
from services.background_producer import BackgroundProducer
from services.client_program import HOME
from services.group_history import committed
from services.group_member import Client
from services.member_events import Read
from services.waiting import wait_until
from services.wire import Wire

from .clients import clients
from .conftest import PARTITIONS, end_offsets, fill

pytestmark = pytest.mark.timeout(120)

READ_S_MAX = 30
ONE_OF_EACH = [
    Client("librdkafka", "range"),
    Client("librdkafka", "consumer"),
    Client("kafka_python", "range"),
    Client("aio", "range"),
    Client("java", "range"),
]


def consumer_of(server: Any, group: str, **settings: Any) -> Consumer:
    common = {"bootstrap.servers": server.address, "group.id": group, "enable.auto.commit": False}
    return Consumer(common | settings)


def read(consumer: Consumer, count: int) -> list[Message]:
    messages: list[Message] = []
    deadline = time.monotonic() + READ_S_MAX
    while len(messages) < count and time.monotonic() < deadline:
        messages += consumer.consume(count - len(messages), 0.2)
    assert all(message.error() is None for message in messages), messages[0].error()
    return messages


def test_group_consumes_a_hundred_messages_from_the_earliest(server, topic):
    """T-04."""
    values = [b"message %d" % number for number in range(100)]
    fill(server, topic, values)
    consumer = Consumer(
        {
            "bootstrap.servers": server.address,
            "group.id": "test-group",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        messages = read(consumer, 100)
    finally:
        consumer.close()
    assert [message.value() for message in messages] == values


@clients(ONE_OF_EACH)
def test_group_starting_at_latest_misses_nothing_after_its_first_commit(
    server, create_group, topic, client
):
    """N-15: the offset reset policy applies only until the first commit."""
    consumers = create_group(server, client, reset="latest")
    for partition in range(PARTITIONS):
        fill(server, topic, [b"old"] * 50, partition)
    with BackgroundProducer(server.address, topic, PARTITIONS):
        (first,) = consumers.start_members()
        wait_until(
            lambda: len(committed(consumers.histories)) == PARTITIONS,
            "first commits",
            seen=consumers,
        )
        first.leave()
    with BackgroundProducer(server.address, topic, PARTITIONS):  # No member reads these yet.
        time.sleep(0.1)
    consumers.start_members()
    ends = end_offsets(server, topic)
    consumers.wait_until_caught_up(ends)
    consumers.stop_all()
    for partition in range(PARTITIONS):
        reads = [
            event
            for history in consumers.histories
            for event in history.events
            if isinstance(event, Read) and event.partition == partition
        ]
        assert reads[0].first >= 50
        assert [each.first for each in reads[1:]] == [each.end for each in reads[:-1]]
        assert reads[-1].end == ends[partition]


def test_consumer_without_membership_commits_and_continues(server, topic, group):
    """N-15: generation -1, in a group without members."""
    with Wire(server.port) as wire:
        wire.create(topic, 2)
    fill(server, topic, [b"%d" % number for number in range(10)])
    consumer = consumer_of(server, group, **{"auto.offset.reset": "earliest"})
    try:
        nothing = consumer.committed([TopicPartition(topic, 0)], timeout=10)
        assert nothing[0].offset == OFFSET_INVALID
        consumer.assign([TopicPartition(topic, 0)])
        assert len(read(consumer, 4)) == 4
        note = TopicPartition(topic, 0, 4, metadata="four of ten")
        consumer.commit(offsets=[note], asynchronous=False)
    finally:
        consumer.close()

    again = consumer_of(server, group, **{"auto.offset.reset": "error"})
    try:
        committed_partition, other_partition = again.committed(
            [TopicPartition(topic, 0), TopicPartition(topic, 1)], timeout=10
        )
        assert (committed_partition.offset, committed_partition.metadata) == (4, "four of ten")
        assert other_partition.offset == OFFSET_INVALID
        again.assign([TopicPartition(topic, 0)])
        assert [message.value() for message in read(again, 6)] == [b"%d" % n for n in range(4, 10)]
    finally:
        again.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_non_member_cannot_commit_in_a_group_with_members(server, topic, group, protocol):
    fill(server, topic, [b"record"])
    settings = {"group.protocol": protocol, "auto.offset.reset": "earliest"}
    member, non_member = consumer_of(server, group, **settings), consumer_of(server, group)
    try:
        member.subscribe([topic])
        assert len(read(member, 1)) == 1
        non_member.assign([TopicPartition(topic, 0)])
        with pytest.raises(KafkaException) as refused:
            non_member.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    finally:
        non_member.close()
        member.close()


@pytest.mark.long
@pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here")
def test_java_consumer_without_membership_commits_and_continues(server, topic, group):
    program = str(HOME / "java" / "CommitWithoutGroup.java")
    fill(server, topic, [b"record"] * 10)
    assert java.run(program, server.address, group, topic).split() == ["0", "10"]
    fill(server, topic, [b"record"] * 5)
    assert java.run(program, server.address, group, topic).split() == ["10", "15"]
