"""Sizes, counts, sums and times as a report says them. Pure."""

from datetime import UTC, datetime
from typing import Final

_SIZES: Final = ("KB", "MB", "GB", "TB", "PB")
_COUNTS: Final = ("thousand", "million", "billion", "trillion")
_SECONDS: Final = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def size(size_bytes: float) -> str:
    """Bytes in the unit that S3 is paid in, and its kin.

    >>> size(0), size(999), size(123_456), size(1_500_000_000), size(23e15)
    ('0 B', '999 B', '123 KB', '1.5 GB', '23 PB')
    """
    return _scaled(size_bytes, "B", _SIZES)


def count(number: float) -> str:
    """A number that one can say aloud.

    >>> count(7), count(123_456), count(1_234_567), count(5e9)
    ('7', '123,456', '1.2 million', '5 billion')
    """
    if number < 1_000_000:
        return f"{number:,.0f}"
    return _scaled(number, "", _COUNTS)


def dollars(amount: float) -> str:
    """A sum, to the cent as long as cents matter.

    >>> dollars(0), dollars(0.004), dollars(21.05), dollars(12_345.6)
    ('$0', 'less than $0.01', '$21.05', '$12,346')
    """
    if amount == 0:
        return "$0"
    if amount < 0.01:
        return "less than $0.01"
    return f"${amount:,.2f}" if amount < 1000 else f"${amount:,.0f}"


def duration(seconds: float) -> str:
    """A time span in the largest unit that fits.

    >>> duration(0.5), duration(1), duration(11.2), duration(7 * 86_400), duration(5400)
    ('0.5 seconds', '1 second', '11 seconds', '7 days', '1.5 hours')
    """
    unit, name = next(((unit, name) for unit, name in _SECONDS if seconds >= unit), _SECONDS[-1])
    number = _short(seconds / unit)
    return f"{number} {name}" if number == "1" else f"{number} {name}s"


def times(ratio: float | None) -> str:
    """A ratio; a dash if there is none.

    >>> times(None), times(4.26), times(1)
    ('-', '4.3x', '1.0x')
    """
    return "-" if ratio is None else f"{ratio:.1f}x"


def percent(share: float) -> str:
    """A share.

    >>> percent(0), percent(0.004), percent(0.256), percent(1)
    ('0 %', '<1 %', '26 %', '100 %')
    """
    return "<1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")


def moment(time_ms: int | None) -> str:
    """A time in UTC, to the minute.

    >>> moment(1_700_000_000_123), moment(None)
    ('2023-11-14 22:13', '-')
    """
    if time_ms is None:
        return "-"
    try:
        return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return str(time_ms)  # No calendar has it.


def _scaled(number: float, small: str, units: tuple[str, ...]) -> str:
    name = small
    for unit in units:
        if number < 999.5:
            break
        number /= 1000
        name = unit
    return f"{_short(number)} {name}".rstrip()


def _short(number: float) -> str:
    """Two digits, or as many as are before the point."""
    return f"{number:.0f}" if number >= 10 or number == round(number) else f"{number:.1f}"
