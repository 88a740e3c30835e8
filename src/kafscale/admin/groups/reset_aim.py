"""Where `kafscale group reset-offsets` moves a group to: the offset that is meant in a partition.

The law, which is Kafka's: a group is sent nowhere where a partition holds nothing. An offset before
the start or behind the end becomes the start or the end, and that is said.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from kafscale.text.units import HOUR_MS, MINUTE_MS, SECOND_MS, parse_duration

_ISO_DURATION: Final = re.compile(
    r"P(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?",
    re.ASCII | re.IGNORECASE,
)
_ISO_UNITS_MS: Final = (24 * HOUR_MS, HOUR_MS, MINUTE_MS, SECOND_MS)


class Kind(StrEnum):
    """The ways to say where to."""

    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"
    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"


class Aim(NamedTuple):
    """Where to: an offset, a number of records from here, a time, or neither of these."""

    kind: Kind
    number: int = 0


class Partition(NamedTuple):
    """What has to be known of a partition."""

    start: int
    end: int
    committed: int | None = None
    at_time: int | None = None
    """The first offset at or after the time aimed at, where there is one."""


def destination(aim: Aim, partition: Partition) -> tuple[int, str]:
    """The offset, and what is to be said about it; a `ValueError` says why there is none."""
    start, end, committed, at_time = partition
    match aim.kind:
        case Kind.EARLIEST:
            return start, ""
        case Kind.LATEST:
            return end, ""
        case Kind.TIME:
            return (end, "no record is that young") if at_time is None else (at_time, "")
        case Kind.CURRENT:
            return (end, "nothing was committed") if committed is None else (committed, "")
        case Kind.OFFSET:
            return _within(start, end, aim.number)
        case Kind.SHIFT:
            if committed is None:
                raise ValueError("nothing is committed, so there is nothing to shift")
            return _within(start, end, committed + aim.number)


def _within(start: int, end: int, wanted: int) -> tuple[int, str]:
    if wanted < start:
        return start, f"{wanted} lies before the start"
    if wanted > end:
        return end, f"{wanted} lies behind the end"
    return wanted, ""


def parse_topic(text: str) -> tuple[str, Sequence[int]]:
    """A topic, with some partitions of it or without.

    >>> parse_topic("orders"), parse_topic("orders:2,0")
    (('orders', ()), ('orders', (2, 0)))
    """
    name, colon, numbers = text.partition(":")
    if not name or (colon and not re.fullmatch(r"\d{1,9}(,\d{1,9})*", numbers, re.ASCII)):
        raise ValueError(f"{text!r} is not a topic, such as orders, or orders:0,2 for some of it")
    return name, tuple(int(number) for number in numbers.split(",")) if colon else ()


def parse_ago(text: str) -> int:
    """The milliseconds that a duration means, written as ISO 8601 has it or as we do.

    >>> parse_ago("PT1H30M"), parse_ago("P1D"), parse_ago("15m")
    (5400000, 86400000, 900000)
    """
    match = _ISO_DURATION.fullmatch(text)
    if match and any(match.groups()):
        parts = zip(match.groups(default="0"), _ISO_UNITS_MS, strict=True)
        return sum(int(number) * unit_ms for number, unit_ms in parts)
    try:
        return parse_duration(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a duration, such as 90m or PT1H30M") from None
