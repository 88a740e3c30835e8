"""Metrics that clients push (KIP-714), aggregated by client software and metric.

A client of librdkafka has a hundred metrics, and there are thousands of clients: a series for each
would be too many. So the values of all clients are added up. What clients count is one counter; of
present values, such as a latency, the sum and the count are kept, whose rates give the average.

Invariant: at most `SERIES_MAX` pairs of software and metric are kept, in the order of first use;
the rest is counted under `OTHER` (docs/decisions/0031).
"""

from collections.abc import Callable, Iterator
from typing import Final

OTHER: Final = ("other", "other")
SERIES_MAX: Final = 2_000

Pair = tuple[str, str]
"""Client software and metric."""


class ClientMetrics:
    """What the clients of a broker have pushed."""

    __slots__ = ("_counted", "_counts", "_sums", "instances", "pushes")

    def __init__(self) -> None:
        self._counted: dict[Pair, float] = {}
        self._sums: dict[Pair, float] = {}
        self._counts: dict[Pair, int] = {}
        self.pushes: dict[str, int] = {}
        """Accepted pushes by client software."""
        self.instances: Callable[[], int] = lambda: 0
        """Returns how many client instances the broker remembers."""

    def add(self, software: str, metric: str, amount: float) -> None:
        """What one client counted since its last push."""
        pair = self._kept(software, metric)
        self._counted[pair] = self._counted.get(pair, 0.0) + amount

    def observe(self, software: str, metric: str, value: float) -> None:
        """A present value of one client."""
        pair = self._kept(software, metric)
        self._sums[pair] = self._sums.get(pair, 0.0) + value
        self._counts[pair] = self._counts.get(pair, 0) + 1

    def pushed(self, software: str) -> None:
        kept = software if software in self.pushes or len(self.pushes) < SERIES_MAX else OTHER[0]
        self.pushes[kept] = self.pushes.get(kept, 0) + 1

    def counted(self) -> Iterator[tuple[Pair, float]]:
        yield from self._counted.items()

    def sums(self) -> Iterator[tuple[Pair, float]]:
        yield from self._sums.items()

    def counts(self) -> Iterator[tuple[Pair, float]]:
        yield from self._counts.items()

    def _kept(self, software: str, metric: str) -> Pair:
        pair = (software, metric)
        if pair in self._counted or pair in self._sums:
            return pair
        return pair if len(self._counted) + len(self._sums) < SERIES_MAX else OTHER
