"""The command line tools against a broker process."""

import json
import signal
import time
from uuid import uuid4

import pytest

from services.process import free_port
from services.shell import Shell

FIRST_MS = 1_700_000_000_000


@pytest.fixture
def kafscale(broker):
    return Shell(broker.address)


def test_topic_commands_create_describe_alter_and_delete(kafscale, topic):
    created = kafscale("topic", "create", topic, "-p", "3", "--config", "retention.ms=7200000")
    assert created == f"created topic {topic} with 3 partitions\n"
    assert "TOPIC_ALREADY_EXISTS" in kafscale("topic", "create", topic, code=1)
    assert "already exists" in kafscale("topic", "create", topic, "--if-not-exists")

    kafscale.produce(topic, "--partition", "1", lines=["a", "b"])
    kafscale(
        "topic",
        "alter",
        topic,
        "-p",
        "4",
        "--config",
        "retention.bytes=1000000",
        "--delete-config",
        "retention.ms",
    )
    (described,) = json.loads(kafscale("topic", "describe", topic, "-o", "json"))
    assert described["configs"] == {"retention.bytes": "1000000"}
    assert [each["endOffset"] for each in described["partitions"]] == [0, 2, 0, 0]
    assert all(each["leader"] is not None for each in described["partitions"])
    assert described["partitions"][1]["sizeBytes"] > 0
    kafscale("topic", "alter", topic, "--config", "flush.ms=7")
    shown = kafscale("topic", "describe", topic)
    assert f"{topic}: 4 partitions, 2 records" in shown
    assert "flush.ms 7 (kept, but not used by Kafscale)" in shown

    listed = {each["name"]: each for each in json.loads(kafscale("topic", "list", "-o", "json"))}
    assert listed[topic]["partitionCount"] == 4
    assert listed[topic]["topicId"] == described["topicId"]

    assert "INVALID_PARTITIONS" in kafscale("topic", "alter", topic, "-p", "1", code=1)
    assert "INVALID_CONFIG" in kafscale("topic", "alter", topic, "--config", "color=red", code=1)
    assert kafscale("topic", "delete", topic) == f"deleted topic {topic}\n"
    assert kafscale("topic", "delete", topic, "--if-exists") == ""
    assert topic not in kafscale("topic", "list")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in kafscale("topic", "describe", topic, code=1)


def test_topic_delete_reports_missing_topics_and_deletes_the_others(kafscale, topic):
    kafscale("topic", "create", topic)
    problems = kafscale("topic", "delete", topic, "absent-" + topic, "--yes", code=1)
    assert f"absent-{topic}" in problems
    assert topic not in kafscale("topic", "list").split()


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_consume_prints_what_was_produced(kafscale, topic, compression):
    values = [f"value {number}" for number in range(100)]
    kafscale.produce(topic, "--compression", compression, lines=values)
    assert kafscale("consume", topic, "--no-follow").splitlines() == values
    assert kafscale("consume", topic, "-n", "7").splitlines() == values[:7]
    assert kafscale("consume", topic, "-e", "--from", "98").splitlines() == values[98:]
    assert kafscale("consume", topic, "-e", "--from", "-3").splitlines() == values[-3:]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_arrive_with_every_acks_setting(kafscale, topic, acks):
    kafscale("topic", "create", topic)
    kafscale.produce(topic, "--acks", acks, "--batch-bytes", "1Ki", lines=map(str, range(1000)))
    assert kafscale("consume", topic, "-n", "1000").split() == [str(n) for n in range(1000)]


def test_json_round_trip_preserves_records(kafscale, topic):
    """Keys, binary values, tombstones, headers, timestamps and partitions are preserved."""
    lines = [
        {"key": "k", "value": "v", "headers": {"h": "1"}, "timestamp": FIRST_MS, "partition": 2},
        {"key": None, "value": {"base64": "AP8="}, "timestamp": FIRST_MS + 1, "partition": 1},
        {"key": "gone", "value": None, "timestamp": FIRST_MS + 2, "partition": 0},
    ]
    for name in (topic, f"copy-{topic}"):
        kafscale("topic", "create", name, "-p", "3")
    kafscale.produce(topic, "-f", "json", lines=map(json.dumps, lines))
    printed = kafscale("consume", topic, "-e", "-f", "json").splitlines()
    kafscale.produce(f"copy-{topic}", "-f", "json", lines=printed)
    copied = kafscale("consume", f"copy-{topic}", "-e", "-f", "json").splitlines()

    def without_topic(texts):
        return sorted(json.dumps(json.loads(text) | {"topic": ""}) for text in texts)

    assert without_topic(printed) == without_topic(copied)
    first = next(record for record in map(json.loads, printed) if record["partition"] == 2)
    assert first["headers"] == [{"key": "h", "value": "1"}]
    assert (first["offset"], first["timestamp"]) == (0, FIRST_MS)


def test_default_partitioner_equals_that_of_other_clients(kafscale, topic):
    from kafka.partitioner.default import murmur2

    keys = [f"key-{number}" for number in range(20)]
    kafscale("topic", "create", topic, "-p", "5")
    kafscale.produce(topic, "-K", r"\t", lines=[f"{key}\tvalue" for key in keys])
    printed = kafscale("consume", topic, "-e", "-t", "%k %p %v").splitlines()
    assert sorted(printed) == sorted(
        f"{key} {(murmur2(key.encode()) & 0x7FFF_FFFF) % 5} value" for key in keys
    )


def test_consume_starts_at_a_timestamp(kafscale, topic):
    lines = [{"value": str(n), "timestamp": FIRST_MS + 1000 * n} for n in range(10)]
    kafscale.produce(topic, "-f", "json", lines=map(json.dumps, lines))
    for start in (f"@{FIRST_MS + 7000}", "2023-11-14T22:13:27Z"):
        assert kafscale("consume", topic, "-e", "--from", start).split() == ["7", "8", "9"]
    assert kafscale("consume", topic, "-e", "--from", "1h") == ""


def test_consume_reads_the_given_partitions_only(kafscale, topic):
    kafscale("topic", "create", topic, "-p", "3")
    lines = [{"value": str(n), "partition": n} for n in range(3)]
    kafscale.produce(topic, "-f", "json", lines=map(json.dumps, lines))
    shown = kafscale("consume", topic, "-e", "-p", "0", "-p", "2", "--show", "partition,offset")
    assert sorted(shown.splitlines()) == ["0\t0\t0", "2\t0\t2"]
    assert "has no partition 3, only 0 to 2" in kafscale("consume", topic, "-p", "3", code=1)


def test_invalid_line_is_reported_and_previous_lines_are_produced(kafscale, topic):
    problems = kafscale.produce(topic, "-f", "json", lines=['{"value": "good"}', "bad"], code=1)
    assert "error: line 2: is not JSON" in problems
    assert kafscale("consume", topic, "-e") == "good\n"


def test_oversized_record_is_reported_and_large_batches_are_split(kafscale, topic):
    kafscale("topic", "create", topic, "--config", "max.message.bytes=1000")
    kafscale.produce(topic, lines=["x" * 300 for _ in range(50)])
    assert len(kafscale("consume", topic, "-e").split()) == 50
    problems = kafscale.produce(topic, lines=["x" * 2000], code=1)
    assert "the record on line 1 was not produced to partition 0" in problems
    assert "MESSAGE_TOO_LARGE" in problems


def test_consume_follows_until_interrupted(kafscale, topic):
    kafscale("topic", "create", topic)
    with kafscale.start("consume", topic) as consumer:
        kafscale.produce(topic, lines=["first"])
        assert consumer.stdout.readline() == "first\n"
        kafscale.produce(topic, lines=["second"])
        assert consumer.stdout.readline() == "second\n"
        consumer.send_signal(signal.SIGINT)
        assert consumer.communicate(timeout=10) == ("", "")
        assert consumer.returncode == 0


def test_consume_exits_quietly_on_a_broken_pipe(kafscale, topic):
    kafscale.produce(topic, lines=map(str, range(100_000)))
    with kafscale.start("consume", topic) as consumer:
        assert consumer.stdout.readline() == "0\n"
        consumer.stdout.close()
        assert consumer.wait(timeout=10) == 0
        assert consumer.stderr.read() == ""


def test_produce_sends_lines_while_it_waits_for_more_input(kafscale, topic):
    with kafscale.start("produce", topic) as producer:
        producer.stdin.write("typed\n")
        deadline = time.monotonic() + 10
        while True:
            # The producer creates the topic; there is nothing to consume before.
            listed = json.loads(kafscale("topic", "list", "-o", "json"))
            if any(each["name"] == topic for each in listed) or time.monotonic() > deadline:
                break
        assert kafscale("consume", topic, "-n", "1") == "typed\n"
        _, summary = producer.communicate(timeout=10)
        assert producer.returncode == 0
        assert f"produced 1 record to {topic} in 1 partition" in summary


@pytest.mark.timeout(60)
def test_produce_and_consume_survive_a_broker_restart(start_broker, topic):
    """No record is lost or duplicated."""
    broker = start_broker()
    kafscale = Shell(broker.address)
    kafscale("topic", "create", topic)
    with kafscale.start("consume", topic) as consumer, kafscale.start("produce", topic) as producer:
        producer.stdin.write("before\n")
        assert consumer.stdout.readline() == "before\n"
        broker.kill()
        producer.stdin.write("meanwhile\n")
        broker.start()
        producer.stdin.write("after\n")
        assert consumer.stdout.readline() == "meanwhile\n"
        assert consumer.stdout.readline() == "after\n"
        _, summary = producer.communicate(timeout=15)
        assert producer.returncode == 0, summary
        assert "produced 3 records" in summary
        consumer.send_signal(signal.SIGINT)
        consumer.communicate(timeout=10)
    assert kafscale("consume", topic, "-e").split() == ["before", "meanwhile", "after"]


def test_unreachable_broker_is_reported_with_advice():
    kafscale = Shell(f"127.0.0.1:{free_port()}")
    for problem in (
        kafscale("topic", "list", code=1),
        kafscale("consume", "orders", code=1),
        kafscale.produce("orders", lines=["lost"], code=1),
    ):
        assert problem.startswith("error: no broker listens on 127.0.0.1:")
        assert "start one with: kafscale broker" in problem


def test_consume_does_not_create_a_missing_topic(kafscale):
    name = f"absent-{uuid4()}"
    problem = kafscale("consume", name, code=1)
    assert f"create it with: kafscale topic create {name}" in problem
    assert name not in kafscale("topic", "list")
