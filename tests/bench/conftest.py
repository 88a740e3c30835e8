"""The bench: measures functions side by side, prints a table, and saves the figures as JSON.

Timings on a shared machine are noisy. Candidates are therefore measured in turns within one run;
assertions use the ratio of their medians.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from bench import results
from bench.brokers import KAFKA, Candidate
from bench.comparison import Comparison
from services import fork_server
from services.broker import BrokerProcess
from services.kafka_server import KafkaServer

ROUNDS = 9
ROUND_SECONDS = 0.02


@dataclass(frozen=True)
class Figure:
    name: str
    median_seconds: float
    best_seconds: float
    size_bytes: int | None

    @property
    def gigabytes_per_second(self) -> float | None:
        return None if self.size_bytes is None else self.size_bytes / self.median_seconds / 1e9


class Bench:
    def __init__(self) -> None:
        self.figures: list[Figure] = []

    def measure(
        self,
        name: str,
        function: Callable[[], object],
        *,
        size_bytes: int | None = None,
        number: int | None = None,
    ) -> float:
        """The median of the seconds per call."""
        return self.compare({name: function}, size_bytes=size_bytes, number=number)[name]

    def compare(
        self,
        candidates: dict[str, Callable[[], object]],
        *,
        size_bytes: int | None = None,
        number: int | None = None,
    ) -> dict[str, float]:
        """The median of each candidate, measured in turns."""
        calls = {name: number or _calls_per_round(f) for name, f in candidates.items()}
        rounds: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(ROUNDS):
            for name, function in candidates.items():
                rounds[name].append(_seconds(function, calls[name]) / calls[name])
        for name, seconds in rounds.items():
            figure = Figure(name, statistics.median(seconds), min(seconds), size_bytes)
            self.figures.append(figure)
        return {name: statistics.median(seconds) for name, seconds in rounds.items()}


def _calls_per_round(function: Callable[[], object]) -> int:
    function()  # The first call may compile.
    calls = 1
    while (seconds := _seconds(function, calls)) < ROUND_SECONDS / 4:
        calls *= 4
    return max(1, round(calls * ROUND_SECONDS / seconds))


def _seconds(function: Callable[[], object], calls: int) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        return time.perf_counter() - start
    finally:
        gc.enable()


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    before = results.read("figures")
    _print(bench.figures, before)
    results.save("figures", {figure.name: asdict(figure) for figure in bench.figures})


def _print(figures: list[Figure], before: dict[str, dict[str, Any]]) -> None:
    table = Table("bench", "median µs", "best µs", "GB/s", "vs last run", title="Bench")
    for column in table.columns[1:]:
        column.justify = "right"
    for figure in figures:
        speed = figure.gigabytes_per_second
        last = before.get(figure.name)
        table.add_row(
            figure.name,
            f"{figure.median_seconds * 1e6:,.2f}",
            f"{figure.best_seconds * 1e6:,.2f}",
            "" if speed is None else f"{speed:,.2f}",
            "" if last is None else f"{figure.median_seconds / last['median_seconds']:.2f} x",
        )
    Console(width=120).print("\n", table)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bench-scale", type=float, default=1.0, help="factor for the work of broker benches"
    )


@pytest.fixture(scope="session", autouse=True)
def _new_interpreters() -> Iterator[None]:
    """Measure processes whose memory holds only what they need."""
    with fork_server.disabled():
        yield


@pytest.fixture(scope="session")
def scaled(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """Multiplies a count or a duration by `--bench-scale`."""
    scale = request.config.getoption("--bench-scale", default=1.0)
    return lambda count: round(count * scale)


class Comparisons:
    def __init__(self) -> None:
        self.all: list[Comparison] = []

    def new(self, title: str, reference: str | None = None) -> Comparison:
        comparison = Comparison(title, reference)
        self.all.append(comparison)
        return comparison


@pytest.fixture(scope="session")
def comparisons() -> Iterator[Comparisons]:
    """Collects the figures of broker benches; prints and saves them at the end."""
    comparisons = Comparisons()
    yield comparisons
    measured = [comparison for comparison in comparisons.all if comparison.rounds]
    Console(width=120).print("\n", *(comparison.table() for comparison in measured))
    results.save("contests", {comparison.title: comparison.to_json() for comparison in measured})


@pytest.fixture
def candidates(tmp_path: Path) -> Iterator[list[Candidate]]:
    """Kafka and Kafscale, with and without fsync, all running.

    Each bench has new brokers, so that background work of an earlier bench does not slow it down.
    """
    with (
        KafkaServer(tmp_path / "kafka") as kafka,
        BrokerProcess(tmp_path / "buffered", local_fsync="false") as buffered,
        BrokerProcess(tmp_path / "forced", local_fsync="true") as forced,
    ):
        yield [
            Candidate(KAFKA, kafka),
            Candidate("Kafscale", buffered),
            Candidate("Kafscale, fsync", forced),
        ]
