"""Apache Kafka and Kafscale side by side, and a topic of its own for each test."""

import re
from collections.abc import Iterator, Sequence

import pytest

from conformance.groups.comparison import Server
from conformance.transactions.client import TransactionClient
from conformance.transactions.servers import running_servers
from services import java


@pytest.fixture(scope="session")
def servers(request, tmp_path_factory) -> Iterator[Sequence[Server]]:
    """Started once for all tests of this process."""
    if not java.is_available():
        pytest.skip("there is no Java to run Apache Kafka with")
    on_kafka = request.config.getoption("on_kafka")
    with running_servers(tmp_path_factory.mktemp("both"), on_kafka=on_kafka) as both:
        yield both


@pytest.fixture
def client(servers, request) -> Iterator[TransactionClient]:
    """A client of both; its transactional id, group and topic have the name of the test."""
    kafka, ours = servers
    module = request.node.path.stem.removeprefix("test_")
    name = re.sub(r"[^\w.-]", "-", f"{module}.{request.node.name.removeprefix('test_')}")
    with TransactionClient(kafka, ours, name) as client:
        client.create(client.topic, partitions=3)
        yield client
        client.finish()
