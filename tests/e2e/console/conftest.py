"""A console for the shared broker, and a visitor who is signed in."""

from collections.abc import Iterator

import pytest

from services.console import ConsoleProcess, Visitor


@pytest.fixture(scope="module")
def console(_shared_broker, tmp_path_factory) -> Iterator[ConsoleProcess]:
    with ConsoleProcess(tmp_path_factory.mktemp("console"), _shared_broker) as running:
        yield running


@pytest.fixture
def visitor(console) -> Iterator[Visitor]:
    """A signed-in visitor; the log of the console is shown on failure."""
    logged_bytes = console.log.stat().st_size
    yield console.visitor()
    print(console.logged(logged_bytes))  # noqa: T201 - shown where the test failed.
