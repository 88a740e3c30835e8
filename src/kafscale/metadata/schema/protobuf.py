"""Encoding and decoding of protobuf messages and timestamps that are stored as values.

A value that cannot be decoded raises a `DamagedObjectError` that names the key. Every record has
the version of the schema that it needs: a record of a later version is not misread, but raises too.

Times are stored as RFC 3339 text in UTC with milliseconds, and round-trip exactly. Values of other
writers may have another UTC offset or more digits; digits beyond milliseconds are dropped.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, TypeVar

from google.protobuf.message import DecodeError

from kafscale.errors import DamagedObjectError
from kafscale.metadata.store.base import Entry

SCHEMA_VERSION: Final = 1
"""The version of the schema: raised when earlier versions of Kafscale would misread its records."""


class Record(Protocol):
    """A message that is stored as a value."""

    schema_version: int

    def ParseFromString(self, serialized: bytes) -> int: ...  # noqa: N802 - as in protobuf.

    def SerializeToString(self, *, deterministic: bool) -> bytes: ...  # noqa: N802


AnyRecord = TypeVar("AnyRecord", bound=Record)

TIME_MS_MIN: Final = -62_135_596_800_000
TIME_MS_MAX: Final = 253_402_300_799_999
"""The first millisecond of the year 1 and the last of the year 9999, the limits of the format."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def serialize(record: Record) -> bytes:
    """The value that stores a record."""
    record.schema_version = SCHEMA_VERSION
    return record.SerializeToString(deterministic=True)


def parse(record: AnyRecord, entry: Entry) -> AnyRecord:
    """Parse the value of an entry into an empty record; one without a version needs version 1."""
    try:
        record.ParseFromString(entry.value)
    except DecodeError as error:
        name = type(record).__name__
        raise DamagedObjectError(entry.key, f"not a {name} message") from error
    if record.schema_version > SCHEMA_VERSION:
        raise DamagedObjectError(
            entry.key,
            "was written by a later version of Kafscale: it has schema version"
            f" {record.schema_version}, this one reads up to {SCHEMA_VERSION}; upgrade this one",
        )
    return record


def read_time(entry: Entry, text: str) -> int:
    """Parse a time field of a message to milliseconds since 1970; 0 for an empty field."""
    try:
        return parse_time(text) if text else 0
    except ValueError as error:
        raise DamagedObjectError(entry.key, f"not a time: {text!r}") from error


def format_time(time_ms: int) -> str:
    """Format milliseconds since 1970; a time that the format cannot express is limited.

    >>> format_time(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    time_ms = min(max(time_ms, TIME_MS_MIN), TIME_MS_MAX)
    moment = _EPOCH + timedelta(milliseconds=time_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> int:
    """Parse to milliseconds since 1970; `ValueError` for text without a UTC offset.

    >>> parse_time("2023-11-14T22:13:20Z")
    1700000000000
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no UTC offset")
    return (moment - _EPOCH) // _MILLISECOND
