"""What holds for all tests."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

# A shared machine pauses whenever it likes: pytest's time-out is the only clock for tests.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture(autouse=True)
def _log_as_at_start() -> Iterator[None]:
    """A test that configures the log, as every command does, leaves no trace for the next one."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--simulation-runs", type=int, default=1000, help="how many runs the simulation has"
    )
    parser.addoption(
        "--simulation-seed", type=int, default=0, help="the seed of the simulation's first run"
    )
    parser.addoption(
        "--on-kafka",
        action="store_true",
        help="run the tests of consumer groups on a real Kafka, to test the tests",
    )
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write golden files anew from what the code makes, to be looked at with git diff",
    )
