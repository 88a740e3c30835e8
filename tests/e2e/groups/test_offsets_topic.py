"""`__consumer_offsets` through Kafka's tools, and across a restart of the broker."""

import json
import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from kafscale.metadata.schema.model import SHARDS_TOPIC, shard_of
from services import java
from services.wire import Wire, batch_of

pytestmark = pytest.mark.timeout(300)  # The first run downloads the tools.

TOOLS = "org.apache.kafka.tools"
GROUP = "billing"


def consumer(broker, group, **settings):
    return Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )


def commit(broker, offset):
    member = consumer(broker, GROUP)
    member.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    member.close()


@pytest.fixture
def broker(start_broker):
    running = start_broker(group_initial_rebalance_delay_ms="0")
    with Wire(running.port) as wire:
        wire.create("orders")
        wire.produce("orders", batch_of([b"one"]))
    return running


@pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here")
def test_tools_list_it_print_its_commits_and_skip_it_in_patterns(broker):
    def run(tool, *arguments):
        return java.run(f"{TOOLS}.{tool}", "--bootstrap-server", broker.address, *arguments)

    assert run("TopicCommand", "--list").split() == ["orders"]
    commit(broker, 1)
    assert run("TopicCommand", "--list").split() == [SHARDS_TOPIC, "orders"]
    assert run("TopicCommand", "--list", "--exclude-internal").split() == ["orders"]
    read = ("consumer.ConsoleConsumer", "--max-messages", "1", "--timeout-ms", "20000")
    # One partition, so that the consumer does not read about a group of its own.
    printed = run(
        *read,
        *("--topic", SHARDS_TOPIC, "--partition", str(shard_of(GROUP)), "--offset", "earliest"),
        *("--formatter", f"{TOOLS}.consumer.OffsetsMessageFormatter"),
    )
    record = json.loads(printed)
    assert record["key"]["data"] == {"group": GROUP, "topic": "orders", "partition": 0}
    assert record["value"]["data"]["offset"] == 1
    assert run(*read, "--include", ".*", "--from-beginning") == "one\n"


def test_reader_continues_where_it_was_after_a_restart(broker):
    def poll(reader):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            message = reader.poll(1)
            if message is not None and not message.error():
                return message
        raise TimeoutError("no record")

    commit(broker, 1)
    reader = consumer(broker, "reader", **{"enable.partition.eof": False})
    reader.assign([TopicPartition(SHARDS_TOPIC, shard_of(GROUP), 0)])
    first = poll(reader)
    broker.kill()
    broker.start()
    commit(broker, 2)
    second = poll(reader)
    reader.close()
    assert first.key() == second.key()
    assert first.offset() < second.offset()
    assert [each.value()[2:10] for each in (first, second)] == [bytes(7) + b"\1", bytes(7) + b"\2"]
