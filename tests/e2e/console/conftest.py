"""A console for the shared broker, and a client of it that is signed in."""

from collections.abc import Iterator

import pytest

from services.console import ConsoleClient, ConsoleProcess


@pytest.fixture(scope="module")
def console(_shared_broker, tmp_path_factory) -> Iterator[ConsoleProcess]:
    with ConsoleProcess(tmp_path_factory.mktemp("console"), _shared_broker) as running:
        yield running


@pytest.fixture
def console_client(console) -> Iterator[ConsoleClient]:
    """A signed-in client; the log of the console is shown on failure."""
    logged_bytes = console.log.stat().st_size
    yield console.client()
    print(console.logged(logged_bytes))  # noqa: T201 - shown where the test failed.
