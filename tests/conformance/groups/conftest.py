"""Apache Kafka and Kafscale side by side."""

from collections.abc import Iterator, Sequence

import pytest

from conformance.groups.comparison import ComparisonClient, Server
from conformance.groups.servers import running_servers
from services import java


@pytest.fixture(scope="session")
def servers(tmp_path_factory) -> Iterator[Sequence[Server]]:
    """Started once for all tests of this process."""
    if not java.is_available():
        pytest.skip("there is no Java to run Apache Kafka with")
    with running_servers(tmp_path_factory.mktemp("both")) as both:
        yield both


@pytest.fixture
def client(servers, request) -> Iterator[ComparisonClient]:
    """A client of both, whose group has the name of the test."""
    kafka, ours = servers
    with ComparisonClient(kafka, ours, request.node.name) as client:
        yield client
        client.finish()
