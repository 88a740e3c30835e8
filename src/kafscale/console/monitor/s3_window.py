"""Rates and latencies of object store requests in the last minutes. Pure.

Increments are summed per broker, so that a broker that restarts or leaves subtracts nothing. Only
the sums within the window are kept.
"""

from collections import deque
from typing import Final

from kafscale.admin.cluster.metrics import StoreOperation, quantile
from kafscale.admin.cluster.snapshot import ClusterSnapshot
from kafscale.console.monitor.rates import growth

WINDOW_MS: Final = 5 * 60 * 1000
SPACING_MS: Final = 3_000
SECONDS_MIN: Final = 10.0
"""A shorter observation is not extrapolated to a day."""
OPERATIONS_MAX: Final = 50

Counts = dict[tuple[str, float], int]
"""By operation and bucket bound; `TOTAL` instead of a bound is the number of requests."""
TOTAL: Final = -1.0


class StoreWindow:
    """The recent object store requests of all brokers."""

    def __init__(self) -> None:
        self._last_counts: dict[int, tuple[int, Counts]] = {}
        """By broker: its epoch, and its counts."""
        self._sum: Counts = {}
        self._sums: deque[tuple[int, Counts]] = deque()

    def update(self, snapshot: ClusterSnapshot) -> None:
        sampled = {}
        for broker in snapshot.brokers:
            if broker.metrics is None:
                continue
            counts = _counts(broker.metrics.operations)
            sampled[broker.id] = broker.epoch, counts
            if broker.id in self._last_counts:
                epoch, before = self._last_counts[broker.id]
                for key, increment in growth(
                    before if epoch == broker.epoch else {}, counts
                ).items():
                    self._sum[key] = self._sum.get(key, 0) + increment
        # Counts are kept while a broker does not respond, and continue when it does.
        self._last_counts |= sampled
        for broker_id in list(self._last_counts)[:-1000]:
            del self._last_counts[broker_id]
        self._append(snapshot.at_ms)

    def operations_per_second(self) -> dict[str, float] | None:
        """By operation, as metrics name them; None before `SECONDS_MIN`."""
        increments, seconds = self._increments()
        if seconds < SECONDS_MIN:
            return None
        return {
            name: count / seconds for (name, bound), count in increments.items() if bound == TOTAL
        }

    def p99_seconds(self) -> dict[str, float]:
        """The 99th percentile of the latency by operation."""
        increments, _ = self._increments()
        buckets: dict[str, list[tuple[float, int]]] = {}
        for (name, bound), count in increments.items():
            if bound != TOTAL:
                buckets.setdefault(name, []).append((bound, count))
        quantiles = {name: quantile(0.99, sorted(each)) for name, each in sorted(buckets.items())}
        return {name: seconds for name, seconds in quantiles.items() if seconds is not None}

    def _increments(self) -> tuple[Counts, float]:
        if not self._sums:
            return {}, 0.0
        (begin_ms, begin), (end_ms, end) = self._sums[0], self._sums[-1]
        return growth(begin, end), (end_ms - begin_ms) / 1000

    def _append(self, at_ms: int) -> None:
        sums = self._sums
        if len(sums) > 1 and sums[-1][0] - sums[-2][0] < SPACING_MS:
            sums.pop()
        sums.append((at_ms, dict(self._sum)))
        while sums[0][0] < at_ms - WINDOW_MS or sums[0][0] > at_ms:
            sums.popleft()


def _counts(operations: dict[str, StoreOperation]) -> Counts:
    counts: Counts = {}
    for name in sorted(operations)[:OPERATIONS_MAX]:
        operation = operations[name]
        counts[name, TOTAL] = operation.total
        counts |= {(name, bound): count for bound, count in operation.buckets}
    return counts
