"""The Prometheus that tests here share, and what it scrapes."""

from collections.abc import Iterator

import pytest

from e2e.monitoring.world import World, world
from services import prometheus


@pytest.fixture(scope="session", autouse=True)
def _prometheus() -> None:
    if not prometheus.is_available():
        pytest.skip("no Prometheus here, and no apt to fetch it with")


@pytest.fixture(scope="session")
def live(_prometheus: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("monitoring")) as found:
        yield found
