"""Start positions: parses `--from`, and resolves it to an offset of a partition.

>>> parse_start("-10", now_ms=0), parse_start("2h", now_ms=10_000_000)
(StartPosition(offset=-10, time_ms=None), StartPosition(offset=None, time_ms=2800000))
"""

import re
from typing import Final, NamedTuple

from kafscale.text.formatting import parse_time
from kafscale.text.units import parse_duration

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
_OFFSET: Final = re.compile(r"-?\d{1,18}", re.ASCII)


class StartPosition(NamedTuple):
    """An offset, a time, or neither, which means the end."""

    offset: int | None = None
    """A negative offset counts from the end."""
    time_ms: int | None = None


def parse_start(text: str, *, now_ms: int) -> StartPosition:
    """Parse a start position; raise `ValueError` if it is invalid."""
    if text == EARLIEST:
        return StartPosition(offset=0)
    if text == LATEST:
        return StartPosition()
    if _OFFSET.fullmatch(text):
        return StartPosition(offset=int(text))
    try:
        return StartPosition(time_ms=max(0, now_ms - parse_duration(text)))
    except ValueError:
        pass
    try:
        return StartPosition(time_ms=max(0, parse_time(text)))
    except ValueError:
        raise ValueError(
            f"{text!r} is not a position: expected earliest, latest, an offset, a time such as"
            " 2026-01-31T12:00:00Z or @1769860800000, or a duration such as 15m"
        ) from None


def resolve_offset(start: StartPosition, first: int, end: int, at_time: int | None) -> int:
    """The offset to start from in a partition with offsets from `first` up to, without, `end`.

    `at_time` is the offset of the first record at or after the time, if there is one.
    """
    if start.time_ms is not None:
        return end if at_time is None else at_time
    if start.offset is None:
        return end
    offset = start.offset if start.offset >= 0 else end + start.offset
    return min(max(offset, first), end)
