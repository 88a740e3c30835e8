"""Numbers and times as people read and write them, for all commands."""

import re
import time
from datetime import UTC, datetime
from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")
_TIME_MS: Final = re.compile(r"@(\d{1,18})", re.ASCII)


def counted(count: int, one: str) -> str:
    """A number with its noun.

    >>> counted(1, "record"), counted(12345, "record")
    ('1 record', '12,345 records')
    """
    return f"{count:,} {one if count == 1 else one + 's'}"


def bytes_in_words(size_bytes: float) -> str:
    """A size in the largest unit that fits.

    >>> bytes_in_words(17), bytes_in_words(1536), bytes_in_words(5 * 2**30)
    ('17 B', '1.5 KiB', '5.0 GiB')
    """
    if size_bytes < 1024:
        return f"{size_bytes:.0f} B"
    for unit in _UNITS:
        size_bytes /= 1024
        if size_bytes < 1024 or unit == _UNITS[-1]:
            break
    return f"{size_bytes:.1f} {unit}"


def iso_time(time_ms: int) -> str:
    """A time in UTC to the millisecond; a number, if no calendar has it.

    >>> iso_time(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    try:
        seconds, milliseconds = divmod(time_ms, 1000)
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=milliseconds * 1000)
    except (OverflowError, OSError, ValueError):
        return str(time_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> int:
    """The milliseconds since 1970 that a date or time of ISO 8601 means; without a zone, in UTC.

    The number itself is a time as well, with @ before it.

    >>> parse_time("2023-11-14T22:13:20.123Z"), parse_time("2023-11-14"), parse_time("@17")
    (1700000000123, 1699920000000, 17)
    """
    if match := _TIME_MS.fullmatch(text):
        return int(match[1])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time, such as 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    # In whole numbers: a float of seconds would lose a millisecond now and then.
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def clock() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
