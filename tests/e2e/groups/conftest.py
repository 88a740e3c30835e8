"""Servers and groups for tests of consumer groups.

The tests run on brokers of ours; with `--on-kafka` they run on Apache Kafka instead, which has to
pass them too: what it does not do cannot be asked of us.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from services.broker import BrokerProcess
from services.consumer_group import ConsumerGroup
from services.group_member import Client
from services.kafka_server import KafkaServer
from services.members.options import MemberOptions
from services.wire import LATEST, Wire

Server = BrokerProcess | KafkaServer
StartServer = Callable[[], Server]
CreateGroup = Callable[..., ConsumerGroup]

PARTITIONS = 12
IMPATIENT = {
    "group.initial.rebalance.delay.ms": "200",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
}
"""Settings with which a test need not wait long, under Kafka's names."""
PATIENT = IMPATIENT | {"group.consumer.session.timeout.ms": "30000"}
"""Where a server restarts, its members have the time to come back."""
ONLY_KAFKAS = {
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
}


@contextmanager
def server_in(directory: Path, settings: Mapping[str, str], *, on_kafka: bool) -> Iterator[Server]:
    if on_kafka:
        with KafkaServer(directory, {**settings, **ONLY_KAFKAS}) as kafka:
            make_coordinator(kafka)
            yield kafka
    else:
        ours = {name.replace(".", "_"): value for name, value in settings.items()}
        with BrokerProcess(directory, **ours) as broker:
            yield broker


def make_coordinator(kafka: KafkaServer) -> None:
    """A Kafka makes the topic for its groups when it is first asked, and refuses until then."""
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "first"})
    consumer.committed([TopicPartition("none", 0)], timeout=60)
    consumer.close()


@pytest.fixture(scope="session")
def _shared_server(tmp_path_factory, request) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("groups")
    on_kafka = request.config.getoption("on_kafka")
    with server_in(directory, IMPATIENT, on_kafka=on_kafka) as running:
        yield running


@pytest.fixture
def server(_shared_server) -> Iterator[Server]:
    """The server that all tests of this process share; what it logs meanwhile is shown."""
    logged_bytes = _shared_server.log.stat().st_size
    yield _shared_server
    print(_shared_server.log.read_bytes()[logged_bytes:].decode())  # noqa: T201


@pytest.fixture
def start_server(tmp_path, request) -> Iterator[StartServer]:
    """Starts servers of the test's own, which it may end and start again."""
    with ExitStack() as stack:

        def start() -> Server:
            on_kafka = request.config.getoption("on_kafka")
            directory = tmp_path / f"server-{uuid4()}"
            process = stack.enter_context(server_in(directory, PATIENT, on_kafka=on_kafka))
            stack.callback(lambda: print(process.log.read_text()[-20_000:]))  # noqa: T201
            return process

        yield start


@pytest.fixture
def group() -> str:
    """A name that no other test uses."""
    return f"group-{uuid4()}"


@pytest.fixture
def create_group(tmp_path, topic, group) -> Iterator[CreateGroup]:
    """Makes a group, still without members, on a topic of 12 partitions."""
    with ExitStack() as stack:

        def make(server: Server, client: Client, **details: Any) -> ConsumerGroup:
            if not client.is_available:
                pytest.skip(f"{client.library} cannot be run here")
            with Wire(server.port) as wire:
                wire.create(topic, PARTITIONS)
            options = MemberOptions(
                address=server.address,
                group=group,
                topic=topic,
                strategy=client.strategy,
                **details,
            )
            consumers = ConsumerGroup(client, options, tmp_path / "members", partitions=PARTITIONS)
            stack.callback(lambda: print(consumers.describe()))  # noqa: T201 - shown where it failed.
            return stack.enter_context(consumers)

        yield make


def ends_of(server: Server, topic: str) -> dict[int, int]:
    """How far each partition goes."""
    with Wire(server.port) as wire:
        return {
            partition: wire.offset(topic, LATEST, partition=partition).offset
            for partition in range(PARTITIONS)
        }


def fill(
    server: Server,
    topic: str,
    values: Sequence[bytes],
    partition: int = 0,
    *,
    timestamp_ms: int = 0,
) -> None:
    """Produce these, now if no time is given; a topic that does not exist gets one partition."""
    producer = Producer({"bootstrap.servers": server.address})
    errors: list[object] = []
    for value in values:
        producer.produce(
            topic,
            value,
            partition=partition,
            timestamp=timestamp_ms,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert producer.flush(5) == 0
    assert set(errors) == {None}
