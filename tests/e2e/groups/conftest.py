"""Servers and groups for tests of consumer groups.

The tests run on Kafscale brokers; with `--on-kafka` they run on Apache Kafka, which must pass too.
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
SHORT_TIMEOUTS = {
    "group.initial.rebalance.delay.ms": "200",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
}
"""Short timeouts, so that tests need not wait long; Kafka's names."""
RESTART_TIMEOUTS = SHORT_TIMEOUTS | {"group.consumer.session.timeout.ms": "30000"}
"""Timeouts that allow members to return after a server restart."""
KAFKA_ONLY_SETTINGS = {
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
}


@contextmanager
def server_in(directory: Path, settings: Mapping[str, str], *, on_kafka: bool) -> Iterator[Server]:
    if on_kafka:
        with KafkaServer(directory, {**settings, **KAFKA_ONLY_SETTINGS}) as kafka:
            create_offsets_topic(kafka)
            yield kafka
    else:
        ours = {name.replace(".", "_"): value for name, value in settings.items()}
        with BrokerProcess(directory, **ours) as broker:
            yield broker


def create_offsets_topic(kafka: KafkaServer) -> None:
    """Let Kafka create its offsets topic; it rejects group requests until then."""
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "first"})
    consumer.committed([TopicPartition("none", 0)], timeout=60)
    consumer.close()


@pytest.fixture(scope="session")
def _shared_server(tmp_path_factory, request) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("groups")
    on_kafka = request.config.getoption("on_kafka")
    with server_in(directory, SHORT_TIMEOUTS, on_kafka=on_kafka) as running:
        yield running


@pytest.fixture
def server(_shared_server) -> Iterator[Server]:
    """The server that all tests of this process share; prints what it logged during the test."""
    logged_bytes = _shared_server.log.stat().st_size
    yield _shared_server
    print(_shared_server.log.read_bytes()[logged_bytes:].decode())  # noqa: T201


@pytest.fixture
def start_server(tmp_path, request) -> Iterator[StartServer]:
    """Start servers that belong to the test, which may stop and restart them."""
    with ExitStack() as stack:

        def start() -> Server:
            on_kafka = request.config.getoption("on_kafka")
            directory = tmp_path / f"server-{uuid4()}"
            process = stack.enter_context(server_in(directory, RESTART_TIMEOUTS, on_kafka=on_kafka))
            stack.callback(lambda: print(process.log.read_text()[-20_000:]))  # noqa: T201
            return process

        yield start


@pytest.fixture
def group() -> str:
    """A unique group name."""
    return f"group-{uuid4()}"


@pytest.fixture
def create_group(tmp_path, topic, group) -> Iterator[CreateGroup]:
    """Create a group without members, on a new topic with 12 partitions."""
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


def end_offsets(server: Server, topic: str) -> dict[int, int]:
    """The end offset of each partition."""
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
    """Produce values, with the current time by default; a missing topic gets one partition."""
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
