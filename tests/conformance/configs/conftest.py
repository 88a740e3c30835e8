"""Apache Kafka and Kafscale side by side, both with node id 1."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TypeVar

import pytest

from conformance.configs.player import Player
from services import java
from services.broker import BrokerProcess
from services.kafka_server import KafkaServer

Value = TypeVar("Value")


@pytest.fixture(scope="session")
def players(tmp_path_factory) -> Iterator[list[Player]]:
    """Both servers, Kafka first; started once for all tests of this process."""
    if not java.is_available():
        pytest.skip("there is no Java to run Apache Kafka with")
    directory = tmp_path_factory.mktemp("configs")
    with (
        KafkaServer(directory / "kafka", {"offsets.topic.num.partitions": "1"}) as kafka,
        BrokerProcess(directory / "ours", broker_id="1") as ours,
        ExitStack() as stack,
    ):
        yield [stack.enter_context(Player(port)) for port in (kafka.port, ours.port)]


@pytest.fixture
def same(players) -> Callable[[Callable[[Player], Value]], Value]:
    """Hold a conversation with both servers; the results must be equal."""

    def play(conversation: Callable[[Player], Value]) -> Value:
        expected, own = [conversation(player) for player in players]
        assert own == expected
        return own

    return play
