"""Apache Kafka and Kafscale side by side, with the topics of the group tests."""

from collections.abc import Iterator

import pytest

from conformance.groups.conftest import servers
from conformance.partitions.comparison import StrictClient

__all__ = ["servers"]


@pytest.fixture
def client(servers) -> Iterator[StrictClient]:
    with StrictClient(*servers) as client:
        yield client
