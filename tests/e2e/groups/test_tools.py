"""Groups through the command line tools of Kafka and through kcat."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from services import java, kcat
from services.group_member import Client
from services.selection import long_except
from services.wire import Wire

from .conftest import PARTITIONS, end_offsets, fill

pytestmark = pytest.mark.timeout(300)  # The first run downloads the tools.

TOOLS = "org.apache.kafka.tools"
with_java = pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here")


@pytest.fixture
def groups(server):
    """Run `kafka-consumer-groups`; return its output with single spaces."""

    def run(*arguments: str) -> str:
        printed = java.run(
            f"{TOOLS}.consumer.group.ConsumerGroupCommand",
            "--bootstrap-server",
            server.address,
            *arguments,
        )
        return re.sub(" +", " ", printed)

    return run


@with_java
@pytest.mark.parametrize("strategy", long_except(["range", "consumer"], "consumer".__eq__))
def test_group_with_members_is_described_and_cannot_be_changed(
    server, create_group, groups, topic, strategy
):
    consumers = create_group(server, Client("librdkafka", strategy))
    group = consumers.group
    consumers.start_members(2)
    consumers.wait_until_stable()
    fill(server, topic, [b"record"] * 7)
    consumers.wait_until_caught_up(end_offsets(server, topic))

    kind, assignor = ("Classic", "range") if strategy == "range" else ("Consumer", "uniform")
    assert f"{group} {kind} Stable" in groups("--list", "--state", "stable", "--type", kind)
    assert group not in groups("--list", "--state", "empty")
    offsets = groups("--describe", "--group", group)
    assert re.search(rf"{group} {topic} 0 7 7 0 \S+ /127.0.0.1 rdkafka", offsets)
    assert len(re.findall(rf"{group} {topic} \d+ \S+ \d+ \S+ \S+ /127.0.0.1", offsets)) == 12
    members = groups("--describe", "--group", group, "--members")
    assert len(re.findall(rf"{group} \S+ /127.0.0.1 rdkafka 6 ", members)) == 2
    state = groups("--describe", "--group", group, "--state")
    assert re.search(rf"{group} {server.address} \(\d+\) {assignor} Stable 2", state)

    assert "GroupNotEmptyException: The group is not empty." in groups("--delete", "--group", group)
    assert f"only be reset if the group '{group}' is inactive" in groups(
        "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"
    )
    assert "forbidden while the consumer group is actively subscribed to it" in groups(
        "--delete-offsets", "--group", group, "--topic", f"{topic}:0"
    )


@pytest.mark.long
@with_java
def test_offsets_are_reset_and_deleted_with_the_group(server, groups, topic, group):
    with Wire(server.port) as wire:
        wire.create(topic, 2)
    now = datetime.now(UTC)
    for hours in (3, 1):
        timestamp_ms = int((now - timedelta(hours=hours)).timestamp() * 1000)
        fill(server, topic, [b"record"] * 10, timestamp_ms=timestamp_ms)
    between = (now - timedelta(hours=2)).replace(tzinfo=None).isoformat(timespec="milliseconds")

    def reset(*arguments: str) -> str:
        return groups("--reset-offsets", "--group", group, "--topic", topic, *arguments)

    def current() -> dict[int, int]:
        shown = groups("--describe", "--group", group)
        matches = re.findall(rf"{group} {topic} (\d+) (\d+) \d+ \d+ - - -", shown)
        return {int(partition): int(offset) for partition, offset in matches}

    assert f"{group} {topic} 0 20" in reset("--to-latest", "--dry-run")
    assert f"GroupIdNotFoundException: Group {group} not found" in groups(
        "--describe", "--group", group
    )
    reset("--to-latest", "--execute")
    assert current() == {0: 20, 1: 0}
    reset("--shift-by", "-7", "--execute")
    assert current() == {0: 13, 1: 0}
    reset("--to-datetime", between, "--execute")
    assert current()[0] == 10
    assert f"{group} {topic} 0 0" in reset("--to-earliest")
    assert current()[0] == 10

    deleted = groups("--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    assert f"{topic} 1 Successful" in deleted
    assert current() == {0: 10}
    assert "UnknownTopicOrPartitionException: This server does not host" in groups(
        "--delete-offsets", "--group", group, "--topic", "no-such-topic"
    )
    state = groups("--describe", "--group", group, "--state")
    assert re.search(rf"{group} {server.address} \(\d+\) - Empty 0", state)
    assert "was successful" in groups("--delete", "--group", group)
    assert group not in groups("--list").split()
    assert "GroupIdNotFoundException: The group id does not exist." in groups(
        "--delete", "--group", group
    )


@with_java
@pytest.mark.long
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_consumer_continues_from_committed_offsets(server, topic, group, protocol):
    def consume(count: int) -> list[str]:
        printed = java.run(
            f"{TOOLS}.consumer.ConsoleConsumer",
            "--bootstrap-server",
            server.address,
            "--topic",
            topic,
            "--group",
            group,
            "--from-beginning",
            "--consumer-property",
            f"group.protocol={protocol}",
            "--max-messages",
            str(count),
            "--timeout-ms",
            "30000",
        )
        return printed.split()

    values = [b"%d" % number for number in range(100)]
    fill(server, topic, values)
    assert consume(60) + consume(40) == [value.decode() for value in values]


@pytest.mark.long
@with_java
def test_consumer_performance_tool_reads_all_records(server, create_group, topic, group):
    create_group(server, Client("java", "range"))
    for partition in range(PARTITIONS):
        fill(server, topic, [bytes(100)] * 1000, partition)
    printed = java.run(
        f"{TOOLS}.ConsumerPerformance",
        "--bootstrap-server",
        server.address,
        "--topic",
        topic,
        "--group",
        group,
        "--messages",
        str(PARTITIONS * 1000),
        "--timeout",
        "30000",
        "--hide-header",
    )
    assert printed.split(", ")[4] == str(PARTITIONS * 1000)


def test_kcat_member_continues_from_committed_offsets(server, topic, group):
    if not kcat.is_available():
        pytest.skip("no kcat here, and no apt to fetch it with")

    def consume(count: int) -> list[bytes]:
        settings = ("-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000")
        arguments = ("-G", group, "-c", str(count), "-q", *settings, topic)
        return kcat.run("-b", server.address, *arguments).splitlines()

    values = [b"%d" % number for number in range(100)]
    fill(server, topic, values)
    assert consume(60) + consume(40) == values
