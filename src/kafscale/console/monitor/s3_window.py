"""What was asked of the object store in the last minutes, and how long it took. Pure.

The law: growth is added up broker by broker, so that one that starts anew, or is gone, takes
nothing away; and of the past only as much is kept as the window is wide.
"""

from collections import deque
from typing import Final

from kafscale.admin.cluster.figures import Operation
from kafscale.admin.cluster.quantiles import quantile
from kafscale.admin.cluster.snapshot import ClusterLook
from kafscale.console.monitor.rates import growth

WINDOW_MS: Final = 5 * 60 * 1000
SPACING_MS: Final = 3_000
SECONDS_MIN: Final = 10.0
"""What was seen for a shorter time says nothing about a day."""
OPERATIONS_MAX: Final = 50

Counts = dict[tuple[str, float], int]
"""By operation and bound of a bucket; `TOTAL` in place of a bound has all of them."""
TOTAL: Final = -1.0


class StoreWindow:
    """All requests of all brokers to the object store, of late."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[int, Counts]] = {}
        """By broker: its epoch, and what it had counted."""
        self._sum: Counts = {}
        self._sums: deque[tuple[int, Counts]] = deque()

    def take(self, look: ClusterLook) -> None:
        seen = {}
        for broker in look.brokers:
            if broker.figures is None:
                continue
            counts = _counts(broker.figures.operations)
            seen[broker.id] = broker.epoch, counts
            if broker.id in self._before:
                epoch, before = self._before[broker.id]
                for key, more in growth(before if epoch == broker.epoch else {}, counts).items():
                    self._sum[key] = self._sum.get(key, 0) + more
        # A broker that does not answer for a while is not forgotten: it goes on where it was.
        self._before |= seen
        for broker_id in list(self._before)[:-1000]:
            del self._before[broker_id]
        self._remember(look.at_ms)

    def operations_per_second(self) -> dict[str, float] | None:
        """By the names that metrics have for them; None before it was seen for long enough."""
        grown, seconds = self._grown()
        if seconds < SECONDS_MIN:
            return None
        return {name: count / seconds for (name, bound), count in grown.items() if bound == TOTAL}

    def p99_seconds(self) -> dict[str, float]:
        """How long 99 of 100 requests took at the most, of the operations that there were."""
        grown, _ = self._grown()
        buckets: dict[str, list[tuple[float, int]]] = {}
        for (name, bound), count in grown.items():
            if bound != TOTAL:
                buckets.setdefault(name, []).append((bound, count))
        found = {name: quantile(0.99, sorted(each)) for name, each in sorted(buckets.items())}
        return {name: seconds for name, seconds in found.items() if seconds is not None}

    def _grown(self) -> tuple[Counts, float]:
        if not self._sums:
            return {}, 0.0
        (begin_ms, begin), (end_ms, end) = self._sums[0], self._sums[-1]
        return growth(begin, end), (end_ms - begin_ms) / 1000

    def _remember(self, at_ms: int) -> None:
        sums = self._sums
        if len(sums) > 1 and sums[-1][0] - sums[-2][0] < SPACING_MS:
            sums.pop()
        sums.append((at_ms, dict(self._sum)))
        while sums[0][0] < at_ms - WINDOW_MS or sums[0][0] > at_ms:
            sums.popleft()


def _counts(operations: dict[str, Operation]) -> Counts:
    found: Counts = {}
    for name in sorted(operations)[:OPERATIONS_MAX]:
        operation = operations[name]
        found[name, TOTAL] = operation.total
        found |= {(name, bound): count for bound, count in operation.buckets}
    return found
