"""Apache Kafka and Kafscale side by side, with ACLs and the same topics."""

import time
from collections.abc import Iterator

import pytest

from conformance.administration.comparison import Comparison
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    TopicToCreate,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from services import java
from services.broker import BrokerProcess
from services.kafka_server import KafkaServer

START_S_MAX = 120
TOPICS = {"orders": 3, "dotted.name": 1}

KAFKA_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
OWN_SETTINGS = {"authorization_enabled": "true", "authorization_super_users": "User:ANONYMOUS"}


@pytest.fixture(scope="session")
def ports(tmp_path_factory) -> Iterator[tuple[int, int]]:
    """The ports of Kafka and Kafscale, started once for all tests of this process."""
    if not java.is_available():
        pytest.skip("there is no Java to run Apache Kafka with")
    directory = tmp_path_factory.mktemp("administration")
    with (
        KafkaServer(directory / "kafka", KAFKA_SETTINGS) as kafka,
        # Kafka's node id is 1, too.
        BrokerProcess(directory / "ours", broker_id="1", **OWN_SETTINGS) as broker,
    ):
        both = Comparison(kafka.port, broker.port)
        topics = [TopicToCreate(name, partitions, 1) for name, partitions in TOPICS.items()]
        both.set_up(CREATE_TOPICS, 5, CreateTopicsRequest(topics))
        requested = MetadataRequest([TopicToDescribe(name=name) for name in TOPICS])
        deadline = time.monotonic() + START_S_MAX
        while any(
            topic.error_code
            for response in both.set_up(METADATA, 12, requested)
            for topic in response.topics
        ):
            assert time.monotonic() < deadline, "the topics have no leaders"
            time.sleep(0.05)
        both.close()
        yield kafka.port, broker.port


@pytest.fixture
def both(ports) -> Iterator[Comparison]:
    comparison = Comparison(*ports)
    yield comparison
    comparison.close()
