"""Time series of the last minutes, for charts. Pure.

Invariants: a series has at most `POINTS_MAX` points, none older than `AGE_MS_MAX`. The number of
series is bounded; a new one starts only when another has ended. A zero need not start a series:
most of a thousand topics are idle, and cost nothing.
"""

from array import array
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

from kafscale.console.schema.base import Point

AGE_MS_MAX: Final = 15 * 60 * 1000
POINTS_MAX: Final = 300
SPACING_MS: Final = AGE_MS_MAX // POINTS_MAX
"""Values within this time become one point: the mean of rates, the last of gauges."""

Key = TypeVar("Key", bound=Hashable)


class TimeSeries:
    """Points in the order of time, 16 bytes each."""

    __slots__ = ("_is_gauge", "_newest_count", "_newest_since_ms", "_times", "_values")

    def __init__(self, *, is_gauge: bool = False) -> None:
        """A gauge keeps its last value within a point; other values are averaged."""
        self._is_gauge = is_gauge
        self._times = array("q")
        self._values = array("d")
        self._newest_since_ms = 0
        self._newest_count = 0

    def __len__(self) -> int:
        return len(self._times)

    @property
    def newest_ms(self) -> int:
        return self._times[-1] if self._times else 0

    def add(self, at_ms: int, value: float) -> None:
        times = self._times
        if times and at_ms < times[-1]:
            return  # The clock was set back; points are dropped until it has caught up.
        if times and at_ms - self._newest_since_ms < SPACING_MS:
            self._newest_count += 1
            times[-1] = at_ms
            weight = 1.0 if self._is_gauge else 1.0 / self._newest_count
            self._values[-1] += (value - self._values[-1]) * weight
            return
        self._newest_since_ms = at_ms
        self._newest_count = 1
        times.append(at_ms)
        self._values.append(value)
        self._drop_before(at_ms - AGE_MS_MAX)

    def points(self) -> list[Point]:
        return [
            Point(at_ms=at_ms, value=value)
            for at_ms, value in zip(self._times, self._values, strict=True)
        ]

    def _drop_before(self, before_ms: int) -> None:
        times = self._times
        count = max(0, len(times) - POINTS_MAX)
        while count < len(times) and times[count] < before_ms:
            count += 1
        if count:
            del times[:count]
            del self._values[:count]


class History(Generic[Key]):
    """Time series by key."""

    def __init__(self, series_max: int, *, of_gauges: bool = False) -> None:
        self._series_max = series_max
        self._of_gauges = of_gauges
        self._series: dict[Key, TimeSeries] = {}

    def __len__(self) -> int:
        return len(self._series)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._series)

    def add(self, key: Key, at_ms: int, value: float, *, keep_zero: bool = False) -> None:
        """Add a point; `keep_zero` starts a series with a zero."""
        series = self._series.get(key)
        if series is None:
            if not (value or keep_zero) or len(self._series) >= self._series_max:
                return
            series = self._series[key] = TimeSeries(is_gauge=self._of_gauges)
        series.add(at_ms, value)

    def points(self, key: Key) -> list[Point]:
        series = self._series.get(key)
        return series.points() if series else []

    def drop_stale(self, now_ms: int) -> None:
        """Drop series whose points are all too old."""
        for key in [
            k for k, series in self._series.items() if series.newest_ms < now_ms - AGE_MS_MAX
        ]:
            del self._series[key]
