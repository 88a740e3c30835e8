"""Kafka's command line tools and Java clients, with default settings including idempotence."""

import json
import re
import subprocess

import pytest

from services import java

pytestmark = [
    pytest.mark.timeout(300),  # The first run downloads the tools.
    pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here"),
]

TOOLS = "org.apache.kafka.tools"


@pytest.fixture
def server(broker):
    return ("--bootstrap-server", broker.address)


def test_console_consumer_reads_what_the_console_producer_sent(server, topic, wire):
    lines = [f"key {number}\tvalue {number}" for number in range(1000)]
    java.run(
        f"{TOOLS}.ConsoleProducer",
        *server,
        "--topic",
        topic,
        "--property",
        "parse.key=true",
        "--compression-codec",
        "zstd",
        stdin="\n".join(lines) + "\n",
    )
    assert len(wire.read(topic)) == 1000
    printed = java.run(
        f"{TOOLS}.consumer.ConsoleConsumer",
        *server,
        "--topic",
        topic,
        "--partition",
        "0",
        "--offset",
        "earliest",
        "--max-messages",
        "1000",
        "--timeout-ms",
        "20000",
        "--property",
        "print.key=true",
    )
    assert printed.splitlines() == lines


def test_topics_tool_creates_alters_describes_and_deletes(server, topic):
    def topics(*arguments: str) -> str:
        return java.run(f"{TOOLS}.TopicCommand", *server, *arguments)

    topics("--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=12345")
    topics("--alter", "--topic", topic, "--partitions", "5")
    described = topics("--describe", "--topic", topic)
    assert "PartitionCount: 5" in described
    assert "retention.ms=12345" in described
    assert re.search(r"Leader: \d+", described)
    assert topic in topics("--list").split()
    topics("--delete", "--topic", topic)
    assert topic not in topics("--list").split()


def test_configs_tool_alters_and_describes(server, topic, wire):
    wire.create(topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    java.run(
        "kafka.admin.ConfigCommand",
        *server,
        "--alter",
        *entity,
        "--add-config",
        "max.message.bytes=2000000",
    )
    shown = java.run("kafka.admin.ConfigCommand", *server, "--describe", *entity)
    assert "max.message.bytes=2000000" in shown


@pytest.mark.long
def test_producer_performance_tool_loses_no_records(server, topic, wire, tmp_path):
    """Then offsets and the deletion of records, each with its tool."""
    wire.create(topic, 3)
    java.run(
        f"{TOOLS}.ProducerPerformance",
        "--topic",
        topic,
        "--num-records",
        "50000",
        "--record-size",
        "200",
        "--throughput",
        "-1",
        "--producer-props",
        f"bootstrap.servers={server[1]}",
    )
    printed = java.run(f"{TOOLS}.GetOffsetShell", *server, "--topic", topic)
    latest = {
        int(partition): int(offset)
        for partition, offset in re.findall(rf"{topic}:(\d+):(\d+)", printed)
    }
    assert sum(latest.values()) == 50_000
    assert sum(len(wire.read(topic, partition=index)) for index in range(3)) == 50_000

    file = tmp_path / "delete.json"
    partition = {"topic": topic, "partition": 0, "offset": 7}
    file.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    java.run(f"{TOOLS}.DeleteRecordsCommand", *server, "--offset-json-file", str(file))
    assert wire.offset(topic, -2).offset == 7


def test_tool_names_the_api_that_is_not_served(server):
    done = subprocess.run(  # noqa: S603 - the command is this test's own.
        java.command(f"{TOOLS}.TransactionsCommand", *server, "list"),
        capture_output=True,
        text=True,
        timeout=java.RUN_S_MAX,
        check=False,
    )
    assert "The node does not support LIST_TRANSACTIONS" in done.stdout + done.stderr
