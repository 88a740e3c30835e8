"""Histograms of values, and rates of totals. Pure."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence


class Histogram:
    """A histogram: the number of values per bucket, and their sum.

    >>> seconds = Histogram((1, 2))
    >>> for value in (0.5, 1, 1.5, 7):
    ...     seconds.observe(value)
    >>> seconds.counts, seconds.sum
    ([2, 1, 1], 10.0)
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add(self, other: "Histogram") -> None:
        """Add the values of another histogram with the same bounds."""
        assert other.bounds == self.bounds
        self.counts = [
            ours + theirs for ours, theirs in zip(self.counts, other.counts, strict=True)
        ]
        self.sum += other.sum


class Rate:
    """How fast a total grows, per second, over a window or since the reading before it.

    >>> rate = Rate(now=0, window_seconds=60)
    >>> rate.per_second(now=10, total=100)
    10.0
    >>> rate.per_second(now=70, total=100)
    0.0
    """

    __slots__ = ("_readings", "_window_seconds")

    def __init__(self, now: float, window_seconds: float = 60.0) -> None:
        self._window_seconds = window_seconds
        self._readings = deque([(now, 0)])

    def per_second(self, now: float, total: int) -> float:
        readings = self._readings
        while len(readings) > 1 and readings[1][0] <= now - self._window_seconds:
            readings.popleft()
        then, before = readings[0]
        # Keep few readings, however often this is called.
        if now - readings[-1][0] >= self._window_seconds / 60:
            readings.append((now, total))
        return (total - before) / (now - then) if now > then else 0.0
