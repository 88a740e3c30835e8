"""An Apache Kafka and a broker of ours, side by side, for conversations with both at once."""

from collections.abc import Iterator, Sequence

import pytest

from conformance.groups.duet import Duet, Server
from conformance.groups.servers import running_in
from services import java


@pytest.fixture(scope="session")
def servers(tmp_path_factory) -> Iterator[Sequence[Server]]:
    """Started once for all conversations of this process."""
    if not java.is_available():
        pytest.skip("there is no Java to run Apache Kafka with")
    with running_in(tmp_path_factory.mktemp("both")) as both:
        yield both


@pytest.fixture
def talk(servers, request) -> Iterator[Duet]:
    """A conversation with both, whose group has the name of the test."""
    kafka, ours = servers
    with Duet(kafka, ours, request.node.name) as duet:
        yield duet
        duet.finish()
