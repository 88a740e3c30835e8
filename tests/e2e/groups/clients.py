"""The clients that the consumer group tests run."""

import pytest

from services.group_member import Client
from services.selection import long_except

CLIENTS = [
    Client("librdkafka", "range"),
    Client("librdkafka", "cooperative-sticky"),
    Client("librdkafka", "consumer"),
    Client("kafka_python", "range"),
    Client("kafka_python", "cooperative-sticky"),
    Client("aio", "range"),
    Client("java", "range"),
    Client("java", "cooperative-sticky"),
    Client("java", "consumer"),
]
"""Clients that keep their membership when a broker returns in time."""
FOREIGN_CLIENTS = [
    Client("franz", "cooperative-sticky"),
    Client("franz", "consumer"),
    Client("sarama", "range"),
    Client("sarama", "sticky"),
    Client("sarama", "cooperative-sticky"),
    Client("kafkago", "range"),
    Client("kafkajs", "roundrobin"),
]
"""Clients that may rejoin when a connection breaks."""
REPRESENTATIVE = [Client("librdkafka", "cooperative-sticky"), Client("franz", "consumer")]
"""One client per protocol: those that `make test` runs. Java's are in `test_tools` as well."""


def clients(values: list[Client]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "client", long_except(values, REPRESENTATIVE.__contains__), ids=str
    )


every_client = clients(CLIENTS)
every_foreign_client = clients(FOREIGN_CLIENTS)
every_kind_of_client = clients([*CLIENTS, *FOREIGN_CLIENTS])
