"""The lines of standard input as records to produce.

The law: one line is one record, and what is wrong with a line is said with its number; nothing is
skipped. Which partition a record goes to, where its line does not say, is left to the partitioner.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from kafscale.cli.commands.consume import record_text
from kafscale.cli.options import Format
from kafscale.client.producer.sender import LineError, Outgoing
from kafscale.records import Header
from kafscale.text.formatting import parse_time

_FIELDS: Final = {"key", "value", "headers", "timestamp", "partition"}
_PASSED_OVER: Final = {"topic", "offset"}
"""What `consume` prints and `produce` decides anew, so that one can be piped into the other."""


@dataclass(frozen=True)
class LineParser:
    """How lines are read."""

    form: Format = Format.TEXT
    key: bytes | None = None
    """The key of every record that does not bring its own."""
    key_separator: bytes | None = None
    """What stands between key and value on a line."""
    headers: tuple[Header, ...] = ()
    """Headers of every record; those of a line come after them."""
    partition: int | None = None

    def parse(self, line: int, text: bytes) -> Outgoing:
        """The record on line number `line`, the first being 1."""
        try:
            if self.form is Format.JSON:
                return self._parse_json(line, text)
            return self._parse_fields(line, text)
        except ValueError as error:
            raise LineError(line, error) from None

    def _parse_fields(self, line: int, text: bytes) -> Outgoing:
        key = self.key
        if self.key_separator is not None:
            written, found, text = text.partition(self.key_separator)
            if not found:
                separator = self.key_separator.decode(errors="replace")
                raise ValueError(f"there is no key: the separator {separator!r} is missing")
            key = record_text.decode(self.form, written)
        value = record_text.decode(self.form, text)
        return Outgoing(line, key, value, self.headers, None, self.partition)

    def _parse_json(self, line: int, text: bytes) -> Outgoing:
        fields = _object(text)
        unknown = fields.keys() - _FIELDS - _PASSED_OVER
        if unknown:
            known = ", ".join(sorted(_FIELDS))
            raise ValueError(f"has an unknown field {min(unknown)!r}; there are {known}")
        return Outgoing(
            line,
            record_text.from_json(fields["key"]) if "key" in fields else self.key,
            record_text.from_json(fields.get("value")),
            self.headers + record_text.headers_from_json(fields.get("headers")),
            _timestamp(fields.get("timestamp")),
            _partition(fields.get("partition", self.partition)),
        )


class LineCutter:
    r"""Cuts chunks of bytes into lines; the last line needs no end.

    >>> cutter = LineCutter()
    >>> cutter.feed(b"one\ntw"), cutter.feed(b"o\nthree"), cutter.end()
    ([b'one'], [b'two'], [b'three'])
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        first, *rest = chunk.split(b"\n")
        self._parts.append(first)
        if not rest:
            return []
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts = [rest[-1]]
        return lines

    def end(self) -> list[bytes]:
        """What came after the last end of a line, if anything did."""
        last = b"".join(self._parts)
        self._parts = []
        return [last] if last else []


def _object(text: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    match fields:
        case dict():
            return fields
        case _:
            raise ValueError('is not an object such as {"key": "k", "value": "v"}')


def _timestamp(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str):
        return parse_time(value)
    raise ValueError(f"has a timestamp {value!r}; it takes milliseconds or a time in ISO 8601")


def _partition(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise ValueError(f"has a partition {value!r}; it takes a number from 0")
