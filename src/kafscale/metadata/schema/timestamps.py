"""Times as the metadata store writes them: RFC 3339, in UTC, to the millisecond.

The law: what is written is read back as the same number of milliseconds. Other writers may use
other offsets from UTC or more digits; both are understood, and digits beyond ours are dropped.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

TIME_MS_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, which is the last that can be written."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def format_time(time_ms: int) -> str:
    """Milliseconds since 1970 as text.

    >>> format_time(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    moment = _EPOCH + timedelta(milliseconds=time_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> int:
    """Milliseconds since 1970; `ValueError` for what is no time with an offset from UTC.

    >>> parse_time("2023-11-14T22:13:20Z")
    1700000000000
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} does not say which offset from UTC it has")
    return (moment - _EPOCH) // _MILLISECOND
