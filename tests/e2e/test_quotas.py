"""Quotas with standard clients: rates are limited, and responses carry the throttle time."""

import json
import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from services import java
from services.process import free_port
from services.shell import Shell
from services.wire import Wire

pytestmark = pytest.mark.timeout(90)

MIB = 1024 * 1024
WAIT_S_MAX = 60
VALUE = bytes(1024)


@pytest.fixture
def quota_broker(start_broker):
    """A broker for one test."""
    return start_broker()


@pytest.fixture
def kafscale(quota_broker):
    return Shell(quota_broker.address)


def produce(address: str, topic: str, count: int, **settings) -> tuple[float, list[float]]:
    """Produce records of 1 KiB; return the seconds it took and the reported throttle times."""
    waits: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": address,
            "batch.size": 65536,
            "throttle_cb": lambda event: waits.append(event.throttle_time),
        }
        | settings
    )
    # The first response also includes the time to fetch metadata.
    producer.produce(topic, b"first", partition=0)
    assert producer.flush(WAIT_S_MAX) == 0
    began = time.monotonic()
    for _ in range(count):
        producer.produce(topic, VALUE, partition=0)
    assert producer.flush(WAIT_S_MAX) == 0
    return time.monotonic() - began, waits


def consume(address: str, topic: str, count: int, **settings) -> float:
    """Consume `count` records; return the seconds since the first one."""
    given = {"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(given | {"fetch.message.max.bytes": 262144} | settings)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    began, result = 0.0, 0
    deadline = time.monotonic() + WAIT_S_MAX
    while result < count and time.monotonic() < deadline:
        result += len(consumer.consume(1000, 0.1))
        began = began or (time.monotonic() if result else 0.0)
    consumer.close()
    assert result >= count
    return time.monotonic() - began


def throttled(broker, quota: str) -> float:
    """The number of responses that were throttled by a quota."""
    name = f'kafscale_throttled_responses_total{{quota="{quota}"}} '
    lines = broker.http("/metrics")[1].splitlines()
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def test_producer_is_throttled_to_its_rate(quota_broker, kafscale, topic):
    kafscale("topic", "create", topic)
    kafscale("quota", "set", "--client-id", "loader", "producer_byte_rate=1Mi")
    seconds, waits = produce(quota_broker.address, topic, 5 * 1024, **{"client.id": "loader"})
    # A burst of one second is free, so this takes at least four seconds.
    assert 3 < seconds < 15
    assert waits
    count = throttled(quota_broker, "producer_byte_rate")
    assert count > 0

    _, waits = produce(quota_broker.address, topic, 5 * 1024, **{"client.id": "other"})
    assert not waits
    assert throttled(quota_broker, "producer_byte_rate") == count


def test_consumer_is_throttled_to_its_rate(quota_broker, kafscale, topic):
    kafscale("topic", "create", topic)
    produce(quota_broker.address, topic, 4 * 1024)
    kafscale("quota", "set", "--client-id", "reader", "consumer_byte_rate=1Mi")
    assert 2 < consume(quota_broker.address, topic, 4 * 1024, **{"client.id": "reader"}) < 15
    count = throttled(quota_broker, "consumer_byte_rate")
    assert count > 0
    consume(quota_broker.address, topic, 4 * 1024, **{"client.id": "other"})
    assert throttled(quota_broker, "consumer_byte_rate") == count


def test_user_quota_applies_to_all_client_ids(start_broker, topic):
    ports = free_port(), free_port()
    broker = start_broker(
        broker_listeners=f"PLAINTEXT://127.0.0.1:{ports[0]},SASL_PLAINTEXT://127.0.0.1:{ports[1]}",
        sasl_enabled_mechanisms="PLAIN",
        sasl_plain_users="alice:secret,bob:secret",
    )
    kafscale = Shell(f"127.0.0.1:{ports[0]}")
    kafscale("topic", "create", topic)
    kafscale("quota", "set", "--user", "alice", "producer_byte_rate=1Mi")
    kafscale("quota", "set", "--client-id", "loader", "producer_byte_rate=100Mi")

    def throttle_times(user: str, client_id: str) -> list[float]:
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        named = {"sasl.username": user, "sasl.password": "secret", "client.id": client_id}
        return produce(f"127.0.0.1:{ports[1]}", topic, 2 * 1024, **login, **named)[1]

    assert not throttle_times("bob", "alice")
    assert throttle_times("alice", "loader")
    assert throttle_times("alice", "bob")
    assert throttled(broker, "producer_byte_rate") > 0


def test_throttled_connection_is_muted_after_the_response(quota_broker, kafscale):
    kafscale("quota", "set", "--user", "ANONYMOUS", "request_rate=2")
    with Wire(quota_broker.port) as wire:
        waits_ms = []
        began = time.monotonic()
        for _ in range(4):
            response = wire.call(METADATA, 12, MetadataRequest(topics=[]))
            waits_ms.append(response.throttle_time_ms)
        seconds = time.monotonic() - began
    assert waits_ms[-1] > 0
    # Only the throttle times before the last response have passed.
    assert sum(waits_ms[:-1]) / 1000 - 0.1 < seconds < sum(waits_ms) / 1000
    kafscale("quota", "remove", "--user", "ANONYMOUS")


def test_connection_rate_quota_rejects_connections(quota_broker, kafscale):
    kafscale("quota", "set", "--ip-default", "connection_creation_rate=5")

    def is_served() -> bool:
        try:
            with Wire(quota_broker.port) as wire:
                wire.call(METADATA, 12, MetadataRequest(topics=[]))
        except OSError:
            return False
        return True

    served = [is_served() for _ in range(10)]
    assert True in served
    assert False in served
    assert throttled(quota_broker, "connection_creation_rate") > 0


def test_quota_commands_set_list_and_remove(kafscale):
    assert "there are no quotas" in kafscale("quota", "list")
    kafscale("quota", "set", "--user", "alice", "producer_byte_rate=1Mi", "request_rate=50")
    kafscale("quota", "set", "--user-default", "--client-id", "a", "consumer_byte_rate=2Mi")
    listed = json.loads(kafscale("quota", "list", "-o", "json"))
    assert listed == [
        {"entity": {"user": None, "client-id": "a"}, "limits": {"consumer_byte_rate": 2 * MIB}},
        {"entity": {"user": "alice"}, "limits": {"producer_byte_rate": MIB, "request_rate": 50}},
    ]
    assert "1.0 MiB/s" in kafscale("quota", "list", "--user", "alice")
    removed = kafscale("quota", "remove", "--user", "alice", "request_rate")
    assert removed == "removed request_rate of user alice\n"
    removed = kafscale("quota", "remove", "--user", "alice")
    assert removed == "removed producer_byte_rate of user alice\n"
    assert "has no such quota" in kafscale("quota", "remove", "--user", "alice", code=1)
    assert len(json.loads(kafscale("quota", "list", "-o", "json"))) == 1


@pytest.mark.long
@pytest.mark.skipif(not java.is_available(), reason="no Java here")
def test_kafka_configs_tool_sets_quotas_and_clients_obey(quota_broker, kafscale, topic):
    def configs(*arguments: str) -> str:
        server = ("--bootstrap-server", quota_broker.address)
        return java.run("kafka.admin.ConfigCommand", *server, *arguments)

    kafscale("topic", "create", topic)
    loader = ("--entity-type", "clients", "--entity-name", "perf")
    configs("--alter", *loader, "--add-config", f"producer_byte_rate={MIB},request_percentage=90")
    shown = configs("--describe", *loader)
    assert f"producer_byte_rate={MIB}" in shown
    limits = {"producer_byte_rate": MIB, "request_percentage": 90}
    (quota,) = json.loads(kafscale("quota", "list", "-o", "json"))
    assert quota == {"entity": {"client-id": "perf"}, "limits": limits}

    report = java.run(
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic",
        topic,
        "--num-records",
        "6144",
        "--record-size",
        "1024",
        "--throughput",
        "-1",
        "--producer-props",
        f"bootstrap.servers={quota_broker.address}",
        "client.id=perf",
    )
    rate = float(report.splitlines()[-1].partition("(")[2].partition(" MB/sec")[0])
    assert 0.5 < rate < 1.6
    configs("--alter", *loader, "--delete-config", "producer_byte_rate,request_percentage")
    assert "there are no quotas" in kafscale("quota", "list")
