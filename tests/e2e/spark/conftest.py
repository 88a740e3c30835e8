"""The Spark session that these tests share.

The tests are marked `spark`, and `make test` runs them separately, in two processes: every xdist
worker starts a session of its own.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services import spark as service

FOLDER = "tests/e2e/spark/"
TIMEOUT_S = 300


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(FOLDER):
            item.add_marker(pytest.mark.spark)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def _shared_spark(tmp_path_factory) -> Iterator[tuple[object, Path]]:
    if missing := service.missing():
        pytest.skip(missing)
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    with service.running(log) as session:
        yield session, log


@pytest.fixture
def spark(_shared_spark):
    """The shared session; a test cleans up its views, queries and settings."""
    session, log = _shared_spark
    logged_bytes = log.stat().st_size
    yield session
    with log.open("rb") as logged:
        logged.seek(logged_bytes)
        print(logged.read().decode(errors="replace"))  # noqa: T201 - shown if the test fails.
