"""The clients that every story about groups is told with."""

import pytest

from services.group_member import Client

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
"""Those that go on as before when a broker returns in time."""
FOREIGN_CLIENTS = [
    Client("franz", "cooperative-sticky"),
    Client("franz", "consumer"),
    Client("sarama", "range"),
    Client("sarama", "sticky"),
    Client("sarama", "cooperative-sticky"),
    Client("kafkago", "range"),
    Client("kafkajs", "roundrobin"),
]
"""Those that may join again, of their own accord, when a connection breaks."""

every_client = pytest.mark.parametrize("client", CLIENTS, ids=str)
every_foreign_client = pytest.mark.parametrize("client", FOREIGN_CLIENTS, ids=str)
everybody = pytest.mark.parametrize("client", [*CLIENTS, *FOREIGN_CLIENTS], ids=str)
