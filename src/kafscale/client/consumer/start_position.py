"""Where reading begins: what `--from` says, and the offset that it means in a partition.

>>> parse_start("-10", now_ms=0), parse_start("2h", now_ms=10_000_000)
(Start(offset=-10, time_ms=None), Start(offset=None, time_ms=2800000))
"""

import re
from typing import Final, NamedTuple

from kafscale.text.formatting import parse_time
from kafscale.text.units import parse_duration

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
_OFFSET: Final = re.compile(r"-?\d{1,18}", re.ASCII)


class Start(NamedTuple):
    """An offset, a time, or neither, which is the end."""

    offset: int | None = None
    """Below 0 it counts from the end."""
    time_ms: int | None = None


def parse_start(text: str, *, now_ms: int) -> Start:
    """What a user means by the place `text`; a `ValueError` says what would be right."""
    if text == EARLIEST:
        return Start(offset=0)
    if text == LATEST:
        return Start()
    if _OFFSET.fullmatch(text):
        return Start(offset=int(text))
    try:
        return Start(time_ms=max(0, now_ms - parse_duration(text)))
    except ValueError:
        pass
    try:
        return Start(time_ms=max(0, parse_time(text)))
    except ValueError:
        raise ValueError(
            f"{text!r} is none of earliest, latest, an offset, a time such as"
            " 2026-01-31T12:00:00Z or @1769860800000, and how long ago such as 15m"
        ) from None


def offset_of(start: Start, first: int, end: int, at_time: int | None) -> int:
    """The offset to begin with in a partition that holds `first` up to, but without, `end`.

    `at_time` is that of the first record at or after the time, where there is one.
    """
    if start.time_ms is not None:
        return end if at_time is None else at_time
    if start.offset is None:
        return end
    wanted = start.offset if start.offset >= 0 else end + start.offset
    return min(max(wanted, first), end)
