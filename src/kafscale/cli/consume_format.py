"""How records are printed: as values alone, with fields beside them, by a template, or as JSON.

The law: what is printed of one record depends on that record only, and is made once per record from
parts that were chosen once per run.
"""

import json
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from kafscale.cli import record_text
from kafscale.cli.options import Format
from kafscale.cli.wording import iso_time
from kafscale.records import Record

Formatter = Callable[[int, Record], bytes]
"""Makes the bytes of one record, given the number of its partition."""

NULL: Final = b"null"


class Field(StrEnum):
    """What can be shown of a record beside its value."""

    KEY = "key"
    OFFSET = "offset"
    PARTITION = "partition"
    TIMESTAMP = "timestamp"
    HEADERS = "headers"


def by_fields(form: Format, fields: Sequence[Field]) -> Formatter:
    """One record a line: the fields in this order, then the value, between tabs."""
    parts = [_part(_SYMBOLS[field], form) for field in fields]
    value = _part("v", form)
    return lambda partition, record: (
        b"\t".join([*(part(partition, record) for part in parts), value(partition, record)]) + b"\n"
    )


def by_template(form: Format, template: str) -> Formatter:
    """What a template says, in which %k and its like stand for parts of the record."""
    parts: list[Formatter] = []
    text = record_text.unescape(template)
    if not text.endswith("\n"):
        text += "\n"
    for plain, symbol in _PIECES.findall(text):
        if plain or symbol == "%%":
            parts.append(_constant((plain or "%").encode()))
        elif symbol[1:] in PARTS:
            parts.append(_part(symbol[1:], form))
        else:
            known = ", ".join(f"%{each}" for each in PARTS)
            raise ValueError(f"{symbol!r} stands for nothing; there are {known} and %%")
    return lambda partition, record: b"".join([part(partition, record) for part in parts])


def as_json(topic: str) -> Formatter:
    """One object a line, with everything; `kafscale produce --format json` reads it."""

    def formatted(partition: int, record: Record) -> bytes:
        fields = {
            "topic": topic,
            "partition": partition,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "key": record_text.to_json(record.key),
            "value": record_text.to_json(record.value),
            "headers": record_text.headers_to_json(record.headers),
        }
        return json.dumps(fields, ensure_ascii=False).encode() + b"\n"

    return formatted


def _part(symbol: str, form: Format) -> Formatter:
    make = PARTS[symbol]
    encode = record_text.ENCODERS[form]
    return lambda partition, record: make(partition, record, encode)


def _constant(text: bytes) -> Formatter:
    return lambda _partition, _record: text


def _bytes(value: bytes | None, encode: Callable[[bytes], bytes]) -> bytes:
    return NULL if value is None else encode(value)


def _headers(record: Record, encode: Callable[[bytes], bytes]) -> bytes:
    return b",".join(
        header.key.encode() + b"=" + _bytes(header.value, encode) for header in record.headers
    )


_Maker = Callable[[int, Record, Callable[[bytes], bytes]], bytes]

PARTS: Final[dict[str, _Maker]] = {
    "k": lambda _partition, record, encode: _bytes(record.key, encode),
    "v": lambda _partition, record, encode: _bytes(record.value, encode),
    "o": lambda _partition, record, _encode: b"%d" % record.offset,
    "p": lambda partition, _record, _encode: b"%d" % partition,
    "t": lambda _partition, record, _encode: b"%d" % record.timestamp_ms,
    "T": lambda _partition, record, _encode: iso_time(record.timestamp_ms).encode(),
    "h": lambda _partition, record, encode: _headers(record, encode),
}
"""What a template may say: key, value, offset, partition, timestamp (a number, a time), headers."""

_SYMBOLS: Final = {
    Field.KEY: "k",
    Field.OFFSET: "o",
    Field.PARTITION: "p",
    Field.TIMESTAMP: "T",
    Field.HEADERS: "h",
}
_PIECES: Final = re.compile(r"([^%]+)|(%.?)", re.DOTALL)
