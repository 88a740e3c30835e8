"""What is remembered of the last minutes: lines of points, as charts draw them. Pure.

The laws: a line has `POINTS_MAX` points at the most, none older than `AGE_MS_MAX`; there are at the
most as many lines as was said, and one more is not begun before another has ended. A line need not
be begun by a zero: of a thousand topics most are quiet, and cost nothing.
"""

from array import array
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

from kafscale.console.schema.base import Point

AGE_MS_MAX: Final = 15 * 60 * 1000
POINTS_MAX: Final = 300
SPACING_MS: Final = AGE_MS_MAX // POINTS_MAX
"""What comes together within this time is one point: the mean of rates, and the last of levels."""

Key = TypeVar("Key", bound=Hashable)


class Line:
    """Points in the order of time, packed: 16 bytes each."""

    __slots__ = ("_is_level", "_newest_count", "_newest_since_ms", "_times", "_values")

    def __init__(self, *, is_level: bool = False) -> None:
        """A level is as high as it was last; of anything else it counts how much there was."""
        self._is_level = is_level
        self._times = array("q")
        self._values = array("d")
        self._newest_since_ms = 0
        self._newest_count = 0

    def __len__(self) -> int:
        return len(self._times)

    @property
    def newest_ms(self) -> int:
        return self._times[-1] if self._times else 0

    def put(self, at_ms: int, value: float) -> None:
        times = self._times
        if times and at_ms < times[-1]:
            return  # The clock was set back; what is drawn goes on when it has caught up.
        if times and at_ms - self._newest_since_ms < SPACING_MS:
            self._newest_count += 1
            times[-1] = at_ms
            share = 1.0 if self._is_level else 1.0 / self._newest_count
            self._values[-1] += (value - self._values[-1]) * share
            return
        self._newest_since_ms = at_ms
        self._newest_count = 1
        times.append(at_ms)
        self._values.append(value)
        self._forget(at_ms - AGE_MS_MAX)

    def points(self) -> list[Point]:
        return [
            Point(at_ms=at_ms, value=value)
            for at_ms, value in zip(self._times, self._values, strict=True)
        ]

    def _forget(self, before_ms: int) -> None:
        times = self._times
        count = max(0, len(times) - POINTS_MAX)
        while count < len(times) and times[count] < before_ms:
            count += 1
        if count:
            del times[:count]
            del self._values[:count]


class History(Generic[Key]):
    """Lines by what they are about."""

    def __init__(self, lines_max: int, *, of_levels: bool = False) -> None:
        self._lines_max = lines_max
        self._of_levels = of_levels
        self._lines: dict[Key, Line] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._lines)

    def put(self, key: Key, at_ms: int, value: float, *, even_zero: bool = False) -> None:
        """One more point; `even_zero` has a line begun by a zero."""
        line = self._lines.get(key)
        if line is None:
            if not (value or even_zero) or len(self._lines) >= self._lines_max:
                return
            line = self._lines[key] = Line(is_level=self._of_levels)
        line.put(at_ms, value)

    def points(self, key: Key) -> list[Point]:
        line = self._lines.get(key)
        return line.points() if line else []

    def end_stale(self, now_ms: int) -> None:
        """Forget lines that nothing was put on for so long that nothing of them is left."""
        for key in [k for k, line in self._lines.items() if line.newest_ms < now_ms - AGE_MS_MAX]:
            del self._lines[key]
