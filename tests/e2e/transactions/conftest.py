"""Servers of the tests of transactions; with `--on-kafka` they run on Apache Kafka."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from services.broker import BrokerProcess
from services.kafka_server import KafkaServer

Server = BrokerProcess | KafkaServer
StartServer = Callable[..., Server]


@pytest.fixture
def start_server(request, tmp_path) -> Iterator[StartServer]:
    """Start one server that belongs to the test."""
    on_kafka = request.config.getoption("on_kafka")
    with ExitStack() as stack:

        def start() -> Server:
            # A group with one member has no other members to wait for.
            if on_kafka:
                settings = {
                    "group.initial.rebalance.delay.ms": "0",
                    "offsets.topic.num.partitions": "3",
                    "transaction.state.log.num.partitions": "3",
                }
                return stack.enter_context(KafkaServer(tmp_path / "kafka", settings))
            broker = BrokerProcess(tmp_path / "broker", group_initial_rebalance_delay_ms="0")
            stack.callback(lambda: print(broker.logged()[-20_000:]))  # noqa: T201
            return stack.enter_context(broker)

        yield start
