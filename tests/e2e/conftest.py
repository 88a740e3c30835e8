"""Broker fixtures: one shared read-only broker, and brokers that a test starts for itself."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from services import s3_server
from services.broker import BrokerProcess
from services.s3_server import S3Server
from services.wire import Wire

StartBroker = Callable[..., BrokerProcess]


@pytest.fixture(scope="session")
def _shared_broker(tmp_path_factory) -> Iterator[BrokerProcess]:
    # A group with one member has no other members to wait for.
    settings = {"group_initial_rebalance_delay_ms": "0"}
    with BrokerProcess(tmp_path_factory.mktemp("broker"), **settings) as running:
        yield running


@pytest.fixture
def broker(_shared_broker) -> Iterator[BrokerProcess]:
    """The broker that all tests of this process share; prints what it logged during the test."""
    logged_bytes = _shared_broker.log.stat().st_size
    yield _shared_broker
    print(_shared_broker.logged(logged_bytes))  # noqa: T201 - shown where the test failed.


@pytest.fixture
def start_broker(tmp_path) -> Iterator[StartBroker]:
    """Start brokers that belong to the test, with the given settings."""
    with ExitStack() as stack:

        def start(**settings: str) -> BrokerProcess:
            process = BrokerProcess(tmp_path / f"broker-{uuid4()}", **settings)
            stack.callback(lambda: print(process.logged()[-20_000:]))  # noqa: T201
            return stack.enter_context(process)

        yield start


@pytest.fixture
def s3(tmp_path) -> Iterator[S3Server]:
    """An S3 server for one test, with an empty bucket."""
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    directory = tmp_path / "s3"
    directory.mkdir()
    with S3Server(directory) as server:
        yield server


@pytest.fixture
def topic() -> str:
    """A unique topic name."""
    return f"topic-{uuid4()}"


@pytest.fixture
def wire(broker) -> Iterator[Wire]:
    with Wire(broker.port) as connected:
        yield connected
