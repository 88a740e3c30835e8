"""How many runs the simulation has, spread over tests so that workers can share them."""

import logging
from typing import Any

import pytest
import structlog

from simulation.model import BrokenPromiseError

SEEDS_PER_TEST = 25

EXPECTED_ERRORS = frozenset({"wal fenced", "records lost that were not durable"})
"""What an engine says aloud and a scenario brings about on purpose."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        runs = metafunc.config.getoption("--simulation-runs")
        first = metafunc.config.getoption("--simulation-seed")
        stops = range(first, first + runs, SEEDS_PER_TEST)
        chunks = [range(seed, min(seed + SEEDS_PER_TEST, first + runs)) for seed in stops]
        metafunc.parametrize("seeds", chunks, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")


@pytest.fixture
def _strict_log() -> None:
    """An engine that reports an error has broken a promise, unless the scenario asked for it."""
    structlog.configure(
        processors=[_refuse],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )


def _refuse(logger: object, method: str, event: dict[str, Any]) -> str:  # noqa: ARG001
    if event["event"] in EXPECTED_ERRORS:
        raise structlog.DropEvent
    error = event.get("exc_info")
    cause = error if isinstance(error, BaseException) else None
    raise BrokenPromiseError(f"the engine reported an error: {event}") from cause
