"""The Prometheus and its targets that these tests share."""

from collections.abc import Iterator

import pytest

from e2e.monitoring.environment import Environment, environment
from services import prometheus


@pytest.fixture(scope="session", autouse=True)
def _prometheus() -> None:
    if not prometheus.is_available():
        pytest.skip("Prometheus is not installed and cannot be installed with apt")


@pytest.fixture(scope="session")
def live(_prometheus: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    with environment(tmp_path_factory.mktemp("monitoring")) as running:
        yield running
