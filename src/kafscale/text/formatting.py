"""Numbers, sizes and times as text: for commands, and for reports. Pure."""

import re
from datetime import UTC, datetime
from typing import Final

_BINARY_SIZES: Final = ("KiB", "MiB", "GiB", "TiB")
_DECIMAL_SIZES: Final = ("KB", "MB", "GB", "TB", "PB")
_COUNTS: Final = ("thousand", "million", "billion", "trillion")
_SECONDS: Final = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_TIME_MS: Final = re.compile(r"@(\d{1,18})", re.ASCII)


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun.

    >>> pluralize(1, "record"), pluralize(12345, "record"), pluralize(0, "entry", "entries")
    ('1 record', '12,345 records', '0 entries')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_size(size_bytes: float) -> str:
    """A size in the largest binary unit that fits.

    >>> format_size(17), format_size(1536), format_size(5 * 2**30)
    ('17 B', '1.5 KiB', '5.0 GiB')
    """
    if size_bytes < 1024:
        return f"{size_bytes:.0f} B"
    for unit in _BINARY_SIZES:
        size_bytes /= 1024
        if size_bytes < 1024 or unit == _BINARY_SIZES[-1]:
            break
    return f"{size_bytes:.1f} {unit}"


def format_time(time_ms: int, timespec: str = "milliseconds") -> str:
    """A time in UTC; the number itself if it is out of range.

    >>> format_time(1_700_000_000_123), format_time(1_700_000_000_999, "seconds")
    ('2023-11-14T22:13:20.123Z', '2023-11-14T22:13:20Z')
    """
    try:
        seconds, milliseconds = divmod(time_ms, 1000)
        time = datetime.fromtimestamp(seconds, UTC).replace(microsecond=milliseconds * 1000)
    except (OverflowError, OSError, ValueError):
        return str(time_ms)
    return time.isoformat(timespec=timespec).replace("+00:00", "Z")


def parse_time(text: str) -> int:
    """Parse an ISO 8601 date or time to milliseconds since 1970; without a zone, in UTC.

    A number of milliseconds is written with a leading @.

    >>> parse_time("2023-11-14T22:13:20.123Z"), parse_time("2023-11-14"), parse_time("@17")
    (1700000000123, 1699920000000, 17)
    """
    if match := _TIME_MS.fullmatch(text):
        return int(match[1])
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time, such as 2026-01-31T12:00:00Z") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    # Integers only: a float of seconds would sometimes lose a millisecond.
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def format_age(duration_ms: int) -> str:
    """A duration in its two largest units.

    >>> [format_age(seconds * 1000) for seconds in (7, 133, 7322, 183_000)]
    ['7s', '2m 13s', '2h 2m', '2d 2h']
    """
    seconds = duration_ms // 1000
    parts: list[str] = []
    for unit, name in _SECONDS:
        count, seconds = divmod(seconds, unit)
        if count or parts or unit == 1:
            parts.append(f"{count}{name[0]}")
    return " ".join(parts[:2])


# --- reports --------------------------------------------------------------------------------------


def format_decimal_size(size_bytes: float) -> str:
    """A size in decimal units, as in the prices of S3.

    >>> format_decimal_size(0), format_decimal_size(999), format_decimal_size(123_456)
    ('0 B', '999 B', '123 KB')
    >>> format_decimal_size(1_500_000_000), format_decimal_size(23e15)
    ('1.5 GB', '23 PB')
    """
    return _scale(size_bytes, "B", _DECIMAL_SIZES)


def format_count(number: float) -> str:
    """A rounded count.

    >>> format_count(7), format_count(123_456), format_count(1_234_567), format_count(5e9)
    ('7', '123,456', '1.2 million', '5 billion')
    """
    if number < 1_000_000:
        return f"{number:,.0f}"
    return _scale(number, "", _COUNTS)


def format_dollars(amount: float) -> str:
    """An amount of money; without cents from $1,000.

    >>> format_dollars(0), format_dollars(0.004), format_dollars(21.05), format_dollars(12_345.6)
    ('$0', 'less than $0.01', '$21.05', '$12,346')
    """
    if amount == 0:
        return "$0"
    if amount < 0.01:
        return "less than $0.01"
    return f"${amount:,.2f}" if amount < 1000 else f"${amount:,.0f}"


def format_duration(seconds: float) -> str:
    """A duration in the largest unit that fits.

    >>> format_duration(0.5), format_duration(1), format_duration(11.2), format_duration(5400)
    ('0.5 seconds', '1 second', '11 seconds', '1.5 hours')
    >>> format_duration(7 * 86_400)
    '7 days'
    """
    unit, name = next(((unit, name) for unit, name in _SECONDS if seconds >= unit), _SECONDS[-1])
    number = _round(seconds / unit)
    return f"{number} {name}" if number == "1" else f"{number} {name}s"


def format_ratio(ratio: float | None) -> str:
    """A ratio; a dash if there is none.

    >>> format_ratio(None), format_ratio(4.26), format_ratio(1)
    ('-', '4.3x', '1.0x')
    """
    return "-" if ratio is None else f"{ratio:.1f}x"


def format_percent(share: float) -> str:
    """A share in percent.

    >>> format_percent(0), format_percent(0.004), format_percent(0.256), format_percent(1)
    ('0 %', '<1 %', '26 %', '100 %')
    """
    return "<1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")


def format_minute(time_ms: int | None) -> str:
    """A time in UTC to the minute; a dash if there is none.

    >>> format_minute(1_700_000_000_123), format_minute(None)
    ('2023-11-14 22:13', '-')
    """
    if time_ms is None:
        return "-"
    try:
        return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return str(time_ms)  # Out of range.


def _scale(number: float, base_unit: str, units: tuple[str, ...]) -> str:
    name = base_unit
    for unit in units:
        if number < 999.5:
            break
        number /= 1000
        name = unit
    return f"{_round(number)} {name}".rstrip()


def _round(number: float) -> str:
    """Round to two digits, or to an integer if that has more."""
    return f"{number:.0f}" if number >= 10 or number == round(number) else f"{number:.1f}"
