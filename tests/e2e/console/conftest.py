"""A console on the broker that all tests share, and somebody who has signed in to it."""

from collections.abc import Iterator

import pytest

from services.console import ConsoleProcess, Visitor


@pytest.fixture(scope="module")
def console(_shared_broker, tmp_path_factory) -> Iterator[ConsoleProcess]:
    with ConsoleProcess(tmp_path_factory.mktemp("console"), _shared_broker) as running:
        yield running


@pytest.fixture
def visitor(console) -> Iterator[Visitor]:
    """Signed in; what the console logs meanwhile is shown."""
    logged_bytes = console.log.stat().st_size
    yield console.visitor()
    print(console.logged(logged_bytes))  # noqa: T201 - shown where the test failed.
