"""Sizes and durations with units: `2Gi`, `100MB`, `30s`, `1m30s`.

Units with an `i` are powers of 1024, those without are powers of 1000, as in Kubernetes: `100MB` is
100,000,000 bytes and `100Mi` is 104,857,600. Formatted values parse to the same number.
"""

import re
from collections.abc import Mapping

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
TIB = 1024 * GIB

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS

_SIZE_UNITS = {
    "Ti": TIB,
    "Gi": GIB,
    "Mi": MIB,
    "Ki": KIB,
    "T": 1000**4,
    "G": 1000**3,
    "M": 1000**2,
    "K": 1000,
    "k": 1000,
    "": 1,
}
_DURATION_UNITS = {"h": HOUR_MS, "m": MINUTE_MS, "s": SECOND_MS, "ms": 1}

# The number of digits is limited, so that parsing is fast for any text.
_NUMBER = r"(\d{1,18}(?:\.\d{1,9})?)"
_SIZE = re.compile(rf"{_NUMBER} ?([A-Za-z]*?)B?", re.ASCII)
_DURATION_PART = re.compile(rf"{_NUMBER} ?(h|ms|m|s)", re.ASCII)
_DURATION = re.compile(rf"(?:{_DURATION_PART.pattern})+", re.ASCII)
_BARE = re.compile(_NUMBER, re.ASCII)


def parse_size(text: str) -> int:
    """Parse a size to bytes.

    >>> parse_size("4096"), parse_size("2Gi"), parse_size("100MB"), parse_size("1.5 KiB")
    (4096, 2147483648, 100000000, 1536)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2] not in _SIZE_UNITS:
        raise ValueError("is not a size")
    return _scale(match[1], _SIZE_UNITS[match[2]], "bytes")


def show_size(size: int) -> str:
    """Format a size exactly, with the largest unit possible.

    >>> show_size(104857600), show_size(2147483647)
    ('100Mi', '2147483647')
    """
    return _show(size, {unit: factor for unit, factor in _SIZE_UNITS.items() if unit[1:] == "i"})


def parse_duration(text: str, bare_unit: str | None = None) -> int:
    """Parse a duration to milliseconds; a bare number has the unit `bare_unit`, if given.

    >>> parse_duration("500ms"), parse_duration("1m30s"), parse_duration("60", bare_unit="s")
    (500, 90000, 60000)
    """
    text = text.strip()
    if _BARE.fullmatch(text):
        if bare_unit is None:
            raise ValueError("has no unit")
        text += bare_unit
    if not _DURATION.fullmatch(text):
        raise ValueError("is not a duration")
    return sum(
        _scale(part[1], _DURATION_UNITS[part[2]], "milliseconds")
        for part in _DURATION_PART.finditer(text)
    )


def show_duration(milliseconds: int) -> str:
    """Format a duration exactly, with the largest single unit possible.

    >>> show_duration(30000), show_duration(500), show_duration(90000)
    ('30s', '500ms', '90s')
    """
    return _show(milliseconds, _DURATION_UNITS)


def _scale(number: str, factor: int, unit: str) -> int:
    """Multiply with integers only: floating point would round large sizes."""
    whole, _, fraction = number.partition(".")
    divisor: int = 10 ** len(fraction)
    value, remainder = divmod(int(whole + fraction) * factor, divisor)
    if remainder:
        raise ValueError(f"is not a whole number of {unit}")
    return value


def _show(value: int, units: Mapping[str, int]) -> str:
    """Format with the first of `units` (largest first) that divides the value."""
    for unit, factor in units.items():
        if value and value % factor == 0:
            return f"{value // factor}{unit}"
    return str(value)
