"""Kafka's command line tools and Java clients, with default settings including idempotence."""

import json
import re
import subprocess

import pytest

from services import java
from services.selection import long_except

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


ENTITIES = [
    ("topics", "", "file.delete.delay.ms=7"),
    ("groups", "billing", "consumer.session.timeout.ms=50000"),
    ("brokers", "0", "log.retention.ms=700000"),
    ("brokers", "default", "log.retention.ms=800000"),
    ("broker-loggers", "0", "kafscale.storage=DEBUG"),
    ("users", "alice", "producer_byte_rate=1000000.0"),
    ("clients", "billing", "consumer_byte_rate=2000000.0"),
    ("ips", "10.0.0.9", "connection_creation_rate=50.0"),
]


@pytest.mark.parametrize(
    "entity", long_except(ENTITIES, lambda entity: entity[0] == "groups" or entity[1] == "default")
)
def test_configs_tool_alters_describes_and_deletes(server, topic, wire, entity):
    """Every type of entity that kafka-configs knows, but client metrics."""
    kind, name, config = entity
    wire.create(topic)
    named = ("--entity-default",) if name == "default" else ("--entity-name", name or topic)

    def configs(action: str, *arguments: str) -> str:
        return java.run(
            "kafka.admin.ConfigCommand", *server, action, "--entity-type", kind, *named, *arguments
        )

    configs("--alter", "--add-config", config)
    assert config in configs("--describe")
    configs("--alter", "--delete-config", config.partition("=")[0])
    assert config not in configs("--describe")


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
        java.command(
            f"{TOOLS}.consumer.group.ShareGroupCommand", *server, "--describe", "--group", "any"
        ),
        capture_output=True,
        text=True,
        timeout=java.RUN_S_MAX,
        check=False,
    )
    assert "The node does not support SHARE_GROUP_DESCRIBE" in done.stdout + done.stderr
