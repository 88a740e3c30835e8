"""How records are printed: as values alone, with fields beside them, by a template, or as JSON.

The law: what is printed of one record depends on that record only, and is made once per record from
parts that were chosen once per run.
"""

import json
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from kafscale.cli.commands.consume import record_text
from kafscale.cli.options import Format
from kafscale.groups.model import TopicPartition
from kafscale.records import Record
from kafscale.text.formatting import format_time

Formatter = Callable[[TopicPartition, Record], bytes]
"""Makes the bytes of one record, given its topic and partition."""

NULL: Final = b"null"


class Field(StrEnum):
    """What can be shown of a record beside its value."""

    TOPIC = "topic"
    KEY = "key"
    OFFSET = "offset"
    PARTITION = "partition"
    TIMESTAMP = "timestamp"
    HEADERS = "headers"


def by_fields(form: Format, fields: Sequence[Field]) -> Formatter:
    """One record a line: the fields in this order, then the value, between tabs."""
    parts = [_part(_SYMBOLS[field], form) for field in fields]
    value = _part("v", form)
    return lambda place, record: (
        b"\t".join([*(part(place, record) for part in parts), value(place, record)]) + b"\n"
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
    return lambda place, record: b"".join([part(place, record) for part in parts])


def as_json(place: TopicPartition, record: Record) -> bytes:
    """One object a line, with everything; `kafscale produce --format json` reads it."""
    topic, partition = place
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


def _part(symbol: str, form: Format) -> Formatter:
    make = PARTS[symbol]
    encode = record_text.ENCODERS[form]
    return lambda place, record: make(place, record, encode)


def _constant(text: bytes) -> Formatter:
    return lambda _place, _record: text


def _bytes(value: bytes | None, encode: Callable[[bytes], bytes]) -> bytes:
    return NULL if value is None else encode(value)


def _headers(record: Record, encode: Callable[[bytes], bytes]) -> bytes:
    return b",".join(
        header.key.encode() + b"=" + _bytes(header.value, encode) for header in record.headers
    )


_Maker = Callable[[TopicPartition, Record, Callable[[bytes], bytes]], bytes]

PARTS: Final[dict[str, _Maker]] = {
    "k": lambda _place, record, encode: _bytes(record.key, encode),
    "v": lambda _place, record, encode: _bytes(record.value, encode),
    "o": lambda _place, record, _encode: b"%d" % record.offset,
    "p": lambda place, _record, _encode: b"%d" % place[1],
    "t": lambda _place, record, _encode: b"%d" % record.timestamp_ms,
    "T": lambda _place, record, _encode: format_time(record.timestamp_ms).encode(),
    "n": lambda place, _record, _encode: place[0].encode(),
    "h": lambda _place, record, encode: _headers(record, encode),
}
"""What a template may say: key, value, offset, partition, timestamp (a number, a time), name of
the topic, headers."""

_SYMBOLS: Final = {
    Field.TOPIC: "n",
    Field.KEY: "k",
    Field.OFFSET: "o",
    Field.PARTITION: "p",
    Field.TIMESTAMP: "T",
    Field.HEADERS: "h",
}
_PIECES: Final = re.compile(r"([^%]+)|(%.?)", re.DOTALL)
