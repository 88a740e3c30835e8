"""The commands `kafscale group` and `kafscale consume --group`."""

import json
import signal
from collections import Counter
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, TopicPartition

from services.background_producer import BackgroundProducer
from services.shell import Shell
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

FIRST_MS = 1_700_000_000_000
SHORT_TIMEOUTS = {"consumer_session_timeout_ms": "6000", "consumer_heartbeat_interval_ms": "200"}


@pytest.fixture
def kafscale(server):
    return Shell(server.address, **SHORT_TIMEOUTS)


def describe(kafscale, group):
    (result,) = json.loads(kafscale("group", "describe", group, "-o", "json"))
    return result


def state_of(kafscale, group):
    """The state of a group; None if it does not exist."""
    listed = json.loads(kafscale("group", "list", "-o", "json"))
    return next((each["state"] for each in listed if each["group"] == group), None)


def server_address(kafscale):
    return kafscale.environment["KAFSCALE_BOOTSTRAP_SERVERS"]


def committed_offsets(kafscale, group):
    """The committed offsets by topic and partition."""
    rows = json.loads(kafscale("group", "offsets", group, "-o", "json"))
    return {(each["topic"], each["partition"]): each["committedOffset"] for each in rows}


def test_consume_continues_from_committed_offsets(kafscale, topic, group):
    kafscale("topic", "create", topic, "-p", "3")
    kafscale.produce(topic, "-K", ":", lines=[f"{n}:{n}" for n in range(100)])
    read = ["consume", topic, "--group", group]
    assert sorted(map(int, kafscale(*read, "-e").split())) == list(range(100))
    assert kafscale(*read, "-e") == ""

    kafscale.produce(topic, "-K", ":", lines=[f"{n}:{n}" for n in range(100, 150)])
    some = kafscale(*read, "-n", "7").split()
    rest = kafscale(*read, "-e", "--from", "latest").split()
    assert len(some) == 7
    assert sorted(map(int, some + rest)) == list(range(100, 150))
    assert sum(each["lag"] for each in describe(kafscale, group)["offsets"]) == 0


def test_consume_reads_several_topics_with_and_without_a_group(kafscale, topic, group):
    topics = [topic, f"other-{topic}"]
    for name in topics:
        kafscale("topic", "create", name, "-p", "2")
        kafscale.produce(name, "--partition", "1", lines=["x", "y"])
    lines = [f"{name}\t1\t{offset}\t{v}" for name in topics for offset, v in enumerate("xy")]
    show = ["--show", "topic,partition,offset", "--no-follow"]
    assert sorted(kafscale("consume", *topics, *show).splitlines()) == sorted(lines)
    in_group = kafscale("consume", *topics, *show, "-g", group, "--assignor", "roundrobin")
    assert sorted(in_group.splitlines()) == sorted(lines)


@pytest.fixture
def start_member(kafscale, topic, group, tmp_path):
    """Start members of the group; each prints to its own file."""
    with ExitStack() as stack:

        def start():
            file = tmp_path / f"member-{len(files)}"
            files.append(file)
            show = ["--show", "partition,offset"]
            member = kafscale.start("consume", topic, "--group", group, *show, output=file)
            stack.callback(member.wait)
            stack.callback(member.kill)
            return member

        files = start.files = []
        yield start


def count_printed(file):
    """How often each record, by partition and offset, was printed."""
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    return Counter((int(line[0]), int(line[1])) for line in lines if len(line) == 3)


@pytest.mark.long
def test_every_record_is_printed_while_members_join_leave_and_crash(
    kafscale, topic, group, start_member
):
    """Only uncommitted records of a killed member are printed twice."""
    count = 6
    kafscale("topic", "create", topic, "-p", str(count))

    def wait_until_members(members, seconds_max=30):
        """Wait until the partitions are assigned evenly to this number of members."""

        def is_balanced():
            if state_of(kafscale, group) != "Stable":
                return False
            described = describe(kafscale, group)["members"]
            shares = [sum(map(len, member["assignment"].values())) for member in described]
            return shares == [count // members] * members

        wait_until(is_balanced, f"{members} members", seconds_max=seconds_max)

    with BackgroundProducer(server_address(kafscale), topic, count):
        first, second = start_member(), start_member()
        wait_until_members(2)
        third = start_member()
        wait_until_members(3)
        first.send_signal(signal.SIGINT)
        assert first.wait(timeout=10) == 0
        wait_until_members(2, seconds_max=4)
        second.kill()
        wait_until_members(1)
        last = start_member()
        wait_until_members(2)
    wait_until(
        lambda: all(each["lag"] == 0 for each in describe(kafscale, group)["offsets"]), "no lag"
    )
    for member, ending in ((third, signal.SIGTERM), (last, signal.SIGINT)):
        member.send_signal(ending)
        assert member.wait(timeout=10) == 0
    assert state_of(kafscale, group) == "Empty"

    ends = committed_offsets(kafscale, group)
    assert min(ends.values()) > 50
    printed = [count_printed(file) for file in start_member.files]
    assert set().union(*printed) == {
        (partition, offset) for (_, partition), end in ends.items() for offset in range(end)
    }
    by_others = sum((each for each in printed if each is not printed[1]), Counter())
    assert max(by_others.values()) == 1, "only records of the killed member are printed twice"


@pytest.mark.long
def test_member_with_blocked_output_leaves_and_rejoins(server, topic, group):
    """Heartbeats continue while output is blocked, up to max.poll.interval.ms."""
    kafscale = Shell(server.address, **SHORT_TIMEOUTS, consumer_max_poll_interval_ms="1500")
    lines = [f"{n} {'x' * 1000}" for n in range(1000)]
    kafscale.produce(topic, lines=lines)
    with kafscale.start("consume", topic, "--group", group) as consumer:
        assert "generation 1" in consumer.stderr.readline()
        assert "records were not consumed within max.poll.interval.ms" in consumer.stderr.readline()
        wait_until(lambda: state_of(kafscale, group) == "Empty", "the member to leave")
        missing = {str(number) for number in range(len(lines))}
        while missing:
            missing.discard(consumer.stdout.readline().split()[0])
        assert "consumed again" in consumer.stderr.readline()
        assert topic in consumer.stderr.readline(), "it has rejoined"
        consumer.send_signal(signal.SIGINT)
        consumer.stdout.read()
        assert consumer.wait(timeout=20) == 0


def test_member_survives_a_broker_restart(start_server, topic, group):
    server = start_server()
    kafscale = Shell(server.address, **SHORT_TIMEOUTS)
    kafscale("topic", "create", topic)
    with kafscale.start("consume", topic, "--group", group) as consumer:
        kafscale.produce(topic, lines=["before"])
        assert consumer.stdout.readline() == "before\n"
        server.terminate()
        server.start()
        kafscale.produce(topic, lines=["after"])
        assert consumer.stdout.readline() == "after\n"
        consumer.send_signal(signal.SIGINT)
        rest, messages = consumer.communicate(timeout=20)
        assert (consumer.returncode, rest) == (0, ""), messages
    assert committed_offsets(kafscale, group) == {(topic, 0): 2}
    assert state_of(kafscale, group) == "Empty"


def test_groups_are_listed_by_state_and_type(kafscale, topic, group):
    kafscale.produce(topic, lines=["a"])
    kafscale("consume", topic, "-e", "--group", group)

    def listed(*arguments):
        return [
            each["group"]
            for each in json.loads(kafscale("group", "list", *arguments, "-o", "json"))
        ]

    assert group in listed()
    assert group in listed("--state", "empty", "--state", "dead", "--type", "Classic")
    assert group not in listed("--state", "stable")
    assert group not in listed("--type", "consumer")
    rows = [line.split() for line in kafscale("group", "list").splitlines()]
    assert [group, "classic", "Empty", "consumer"] in rows


def test_group_with_members_is_described_and_cannot_be_reset_or_deleted(kafscale, topic, group):
    kafscale("topic", "create", topic, "-p", "2")
    kafscale.produce(topic, "--partition", "1", lines=["a", "b", "c"])
    kafscale("consume", topic, "-n", "2", "-g", group)
    with kafscale.start("consume", topic, "--group", group) as consumer:
        assert consumer.stdout.readline() == "c\n"
        wait_until(lambda: committed_offsets(kafscale, group) == {(topic, 1): 3}, "the commit")
        described = describe(kafscale, group)
        (member,) = described["members"]
        assert (described["type"], described["state"], described["assignor"]) == (
            "classic",
            "Stable",
            "range",
        )
        assert described["coordinator"]["address"] == server_address(kafscale)
        assert (member["host"], member["clientId"]) == ("127.0.0.1", "kafscale")
        assert member["topics"] == [topic]
        assert member["assignment"] == {topic: [0, 1]}
        assert [
            (each["partition"], each["committedOffset"], each["endOffset"], each["lag"])
            for each in described["offsets"]
        ] == [(0, None, 0, None), (1, 3, 3, 0)]
        assert {each["memberId"] for each in described["offsets"]} == {member["memberId"]}

        table = kafscale("group", "describe", group, "--members", "--state", "--offsets")
        assert f"{group}: Stable, 1 member, range, 0 records behind" in table
        assert f"{topic} 0-1" in table
        reset = ["group", "reset-offsets", group, "--topic", topic, "--to-earliest"]
        assert "has 1 member (Stable)" in kafscale(*reset, code=1)
        assert "NON_EMPTY_GROUP" in kafscale("group", "delete", group, code=1)
        consumer.send_signal(signal.SIGINT)
        consumer.communicate(timeout=10)


def test_consumer_protocol_group_is_described(kafscale, topic, group):
    kafscale("topic", "create", topic, "-p", "2")
    kafscale.produce(topic, "--partition", "0", lines=["a", "b"])
    consumer = Consumer(
        {
            "bootstrap.servers": server_address(kafscale),
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        wait_until(lambda: consumer.poll(0.1) is not None, "a record")
        consumer.commit(asynchronous=False)
        described = describe(kafscale, group)
        (member,) = described["members"]
        assert (described["type"], described["state"]) == ("consumer", "Stable")
        assert member["assignment"] == member["target"] == {topic: [0, 1]}
        assert described["offsets"][0]["lag"] == 1
        assert group in kafscale("group", "list", "--type", "consumer")
    finally:
        consumer.close()


def test_committed_offsets_are_listed_with_metadata(kafscale, topic, group):
    kafscale.produce(topic, lines=["a", "b", "c"])
    consumer = Consumer({"bootstrap.servers": server_address(kafscale), "group.id": group})
    note = TopicPartition(topic, 0, 1, metadata="half a loaf")
    consumer.commit(offsets=[note], asynchronous=False)
    consumer.close()
    (row,) = json.loads(kafscale("group", "offsets", group, "-o", "json"))
    assert (row["committedOffset"], row["endOffset"], row["lag"]) == (1, 3, 2)
    assert row["metadata"].rstrip("\0") == "half a loaf", "librdkafka appends a null byte"
    assert "half a loaf" in kafscale("group", "offsets", group)


def test_reset_offsets_previews_and_executes(kafscale, topic, group):
    lines = [{"value": str(n), "timestamp": FIRST_MS + 1000 * n} for n in range(10)]
    # The timestamps are years old; retention must not delete the records during the test.
    kafscale("topic", "create", topic, "-p", "2", "--config", "retention.ms=-1")
    kafscale.produce(topic, "-f", "json", "--partition", "0", lines=map(json.dumps, lines))
    kafscale("consume", topic, "-e", "--group", group)

    def reset(*target, topics=("--topic", topic), execute=True):
        arguments = [*topics, *target, "-o", "json", *(["--execute"] if execute else [])]
        plan = json.loads(kafscale("group", "reset-offsets", group, *arguments))
        if execute:
            committed = committed_offsets(kafscale, group)
            assert all(
                committed[each["topic"], each["partition"]] == each["after"] for each in plan
            )
        return [(each["partition"], each["before"], each["after"], each["note"]) for each in plan]

    before = committed_offsets(kafscale, group)
    assert reset("--to-earliest", execute=False) == [
        (0, 10, 0, None),
        (1, before.get((topic, 1)), 0, None),
    ]
    assert committed_offsets(kafscale, group) == before
    first = ("--topic", f"{topic}:0")
    assert reset("--to-offset", "4", topics=first) == [(0, 10, 4, None)]
    assert reset("--to-offset", "40", topics=first) == [(0, 4, 10, "40 is after the end")]
    assert reset("--shift-by", "-3", topics=first) == [(0, 10, 7, None)]
    assert reset("--shift-by", "-30", topics=first) == [(0, 7, 0, "-23 is before the start")]
    assert reset("--to-datetime", "2023-11-14T22:13:26Z", topics=first) == [(0, 0, 6, None)]
    assert reset("--by-duration", "PT1H", topics=first) == [
        (0, 6, 10, "no record is at or after that time")
    ]
    assert reset("--to-latest", topics=("--all-topics",))[0] == (0, 10, 10, None)
    assert reset("--to-current")[0] == (0, 10, 10, None)
    assert reset("--by-duration", "876000h", topics=first) == [(0, 10, 0, None)]
    assert kafscale("consume", topic, "-e", "--group", group).split() == [str(n) for n in range(10)]

    table = kafscale("group", "reset-offsets", group, *first, "--shift-by", "-1")
    assert "-1" in table
    assert "has no partition 7" in kafscale(
        "group", "reset-offsets", group, "--topic", f"{topic}:7", "--to-latest", code=1
    )


def test_reset_without_committed_offsets(kafscale, topic, group):
    """It creates the group; only a shift needs a committed offset."""
    kafscale.produce(topic, lines=["a", "b"])
    command = ["group", "reset-offsets", group]
    assert "committed nothing" in kafscale(*command, "--all-topics", "--to-latest", code=1)
    problem = kafscale(*command, "--topic", topic, "--shift-by", "1", code=1)
    assert "nothing to shift" in problem
    kafscale(*command, "--topic", topic, "--to-offset", "1", "--execute")
    assert kafscale("consume", topic, "-e", "--group", group) == "b\n"


def test_groups_are_deleted_with_their_offsets(kafscale, topic, group):
    kafscale.produce(topic, lines=["a"])
    kafscale("consume", topic, "-e", "--group", group)
    absent = f"absent-{group}"
    problems = kafscale("group", "delete", group, absent, "--yes", code=1)
    assert absent in problems
    assert "kafscale group list" in problems
    assert group not in kafscale("group", "list").split()
    assert kafscale("group", "delete", group, "--if-exists") == ""
    assert "GROUP_ID_NOT_FOUND" in kafscale("group", "describe", group, code=1)
    assert "GROUP_ID_NOT_FOUND" in kafscale("group", "offsets", group, code=1)


def test_member_with_another_assignor_is_rejected(kafscale, topic, group):
    kafscale.produce(topic, lines=["a"])
    with kafscale.start("consume", topic, "--group", group) as consumer:
        assert consumer.stdout.readline() == "a\n"
        other = ["consume", topic, "-g", group, "--assignor", "roundrobin"]
        assert "try another --assignor" in kafscale(*other, code=1)
        consumer.send_signal(signal.SIGINT)
        consumer.communicate(timeout=10)
