"""The number of simulation runs, split over tests so that workers can share them."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from simulation.model import InvariantViolationError

SEEDS_PER_TEST = 25
GROUP_RUNS_SHARE = 25
"""A group run simulates two minutes of heartbeats: there is one for this number of engine runs."""

NODE_RUNS_SHARE = 10
"""A run of whole brokers takes as long as some runs of the engine, so there are fewer."""

EXPECTED_ERRORS = frozenset(
    {"wal fenced", "records lost before they were durable", "records not saved"}
)
"""Logged errors that scenarios cause on purpose."""

DAMAGE_ERRORS = frozenset(
    {
        "damaged WAL object",
        "damaged WAL object kept",
        "damaged segment",
        "object kept in quarantine",
        "offsets missing",
    }
)
"""Logged errors of scenarios that damage objects."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    runs = metafunc.config.getoption("--simulation-runs")
    first = metafunc.config.getoption("--simulation-seed")
    _spread(metafunc, "seeds", range(first, first + runs), SEEDS_PER_TEST)
    _spread(metafunc, "few_seeds", range(first, first + max(runs // 5, 1)), SEEDS_PER_TEST)
    few = max(runs // GROUP_RUNS_SHARE, 1)
    _spread(metafunc, "group_seeds", range(first, first + few), SEEDS_PER_TEST // 5)
    some = max(runs // NODE_RUNS_SHARE, 1)
    _spread(metafunc, "node_seeds", range(first, first + some), SEEDS_PER_TEST // 5)


def _spread(metafunc: pytest.Metafunc, name: str, seeds: range, count: int) -> None:
    if name in metafunc.fixturenames:
        chunks = [seeds[start : start + count] for start in range(0, len(seeds), count)]
        metafunc.parametrize(name, chunks, ids=lambda chunk: f"{chunk[0]}-{chunk[-1]}")


@pytest.fixture
def _strict_log() -> None:
    """An engine that logs an error has violated an invariant, unless the scenario caused it."""
    _configure(_fail_on_error)


@pytest.fixture
def _damage_log() -> None:
    """As `_strict_log`, but damage may be reported."""
    _configure(_fail_on_other_error)


def _configure(processor: Callable[[object, str, dict[str, Any]], str]) -> None:
    structlog.configure(
        processors=[processor],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )


def _fail_on_other_error(logger: object, method: str, event: dict[str, Any]) -> str:
    if event["event"] in DAMAGE_ERRORS:
        raise structlog.DropEvent
    return _fail_on_error(logger, method, event)


@pytest.fixture
def logged_errors() -> list[dict[str, Any]]:
    """The unexpected errors that brokers log: a broker may catch what `_strict_log` raises."""
    errors: list[dict[str, Any]] = []

    def collect(logger: object, method: str, event: dict[str, Any]) -> str:  # noqa: ARG001
        if event["event"] not in EXPECTED_ERRORS:
            errors.append(event)
        raise structlog.DropEvent

    structlog.configure(
        processors=[collect],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )
    return errors


def _fail_on_error(logger: object, method: str, event: dict[str, Any]) -> str:  # noqa: ARG001
    if event["event"] in EXPECTED_ERRORS:
        raise structlog.DropEvent
    error = event.get("exc_info")
    cause = error if isinstance(error, BaseException) else None
    raise InvariantViolationError(f"the engine reported an error: {event}") from cause
