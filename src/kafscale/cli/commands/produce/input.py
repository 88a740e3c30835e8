"""Standard input as records: reads chunks in a thread, splits lines and parses records.

Each line is one record; an invalid line is an error that names its number. The partitioner chooses
the partition unless the line or an option names one.
"""

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kafscale.cli.commands.consume import record_text
from kafscale.cli.options import Format
from kafscale.client.producer import LineError, OutgoingRecord
from kafscale.records import Header
from kafscale.text.formatting import parse_time

CHUNK_BYTES: Final = 256 * 1024
CHUNKS_COUNT_MAX: Final = 4
"""How many chunks are read ahead."""

_FIELDS: Final = {"key", "value", "headers", "timestamp", "partition"}
_IGNORED_FIELDS: Final = {"topic", "offset"}
"""Printed by `consume` and ignored by `produce`, so that one can be piped into the other."""


class InputReader:
    """Reads chunks in a daemon thread, because a blocking read cannot be interrupted.

    Create it in the event loop that reads the chunks.
    """

    def __init__(self, read: Callable[[], bytes]) -> None:
        """`read` blocks for the next bytes, and returns none at the end."""
        self._read = read
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._free_slots = threading.Semaphore(CHUNKS_COUNT_MAX)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read_chunks, name="input", daemon=True).start()

    @property
    def is_waiting(self) -> bool:
        """True if no chunk is available yet."""
        return self._chunks.empty()

    async def next(self) -> bytes:
        """Wait for the next bytes; none at the end."""
        chunk = await self._chunks.get()
        self._free_slots.release()
        return chunk

    def _read_chunks(self) -> None:
        chunk = b"?"
        while chunk:
            self._free_slots.acquire()
            try:
                chunk = self._read()
            except OSError:
                chunk = b""
            # The loop is closed if the command has ended.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._chunks.put_nowait, chunk)


@dataclass(frozen=True)
class LineParser:
    """Parses lines into records, as the options of the command say."""

    form: Format = Format.TEXT
    key: bytes | None = None
    """The key of records without a key of their own."""
    key_separator: bytes | None = None
    """Separates key and value on a line."""
    headers: tuple[Header, ...] = ()
    """Headers of all records; those of a line come after them."""
    partition: int | None = None

    def parse(self, line: int, text: bytes) -> OutgoingRecord:
        """Parse line number `line`; the first is 1."""
        try:
            if self.form is Format.JSON:
                return self._parse_json(line, text)
            return self._parse_fields(line, text)
        except ValueError as error:
            raise LineError(line, error) from None

    def _parse_fields(self, line: int, text: bytes) -> OutgoingRecord:
        key = self.key
        if self.key_separator is not None:
            encoded_key, delimiter, text = text.partition(self.key_separator)
            if not delimiter:
                separator = self.key_separator.decode(errors="replace")
                raise ValueError(f"has no key: the separator {separator!r} is missing")
            key = record_text.decode(self.form, encoded_key)
        value = record_text.decode(self.form, text)
        return OutgoingRecord(line, key, value, self.headers, None, self.partition)

    def _parse_json(self, line: int, text: bytes) -> OutgoingRecord:
        fields = _object(text)
        unknown = fields.keys() - _FIELDS - _IGNORED_FIELDS
        if unknown:
            known = ", ".join(sorted(_FIELDS))
            raise ValueError(f"has an unknown field {min(unknown)!r}; the fields are {known}")
        return OutgoingRecord(
            line,
            record_text.from_json(fields["key"]) if "key" in fields else self.key,
            record_text.from_json(fields.get("value")),
            self.headers + record_text.headers_from_json(fields.get("headers")),
            _timestamp(fields.get("timestamp")),
            _partition(fields.get("partition", self.partition)),
        )


class LineSplitter:
    r"""Splits chunks of bytes into lines; the last line needs no newline.

    >>> splitter = LineSplitter()
    >>> splitter.feed(b"one\ntw"), splitter.feed(b"o\nthree"), splitter.end()
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
        """The rest after the last newline, if any."""
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
    raise ValueError(
        f"has an invalid timestamp {value!r}; expected milliseconds or a time in ISO 8601"
    )


def _partition(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise ValueError(f"has an invalid partition {value!r}; expected a number from 0")
