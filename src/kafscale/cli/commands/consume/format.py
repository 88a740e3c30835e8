"""Formats records: by fields, by a template, or as JSON.

A formatter is built once per run, and formats each record independently of the others.
"""

import json
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from kafscale.cli.commands.consume import record_text
from kafscale.cli.options import Format
from kafscale.records import Record
from kafscale.text.formatting import format_time
from kafscale.text.topic_partition import TopicPartition

Formatter = Callable[[TopicPartition, Record], bytes]
"""Formats one record, given its topic partition."""

NULL: Final = b"null"


class Field(StrEnum):
    """Fields that can be printed in addition to the value."""

    TOPIC = "topic"
    KEY = "key"
    OFFSET = "offset"
    PARTITION = "partition"
    TIMESTAMP = "timestamp"
    HEADERS = "headers"


def by_fields(form: Format, fields: Sequence[Field]) -> Formatter:
    """One line per record: the fields in this order and the value, separated by tabs."""
    parts = [_part(_SYMBOLS[field], form) for field in fields]
    value = _part("v", form)
    return lambda topic_partition, record: (
        b"\t".join(
            [*(part(topic_partition, record) for part in parts), value(topic_partition, record)]
        )
        + b"\n"
    )


def by_template(form: Format, template: str) -> Formatter:
    """Format by a template, in which %k and other placeholders stand for parts of the record."""
    parts: list[Formatter] = []
    text = record_text.unescape(template)
    if not text.endswith("\n"):
        text += "\n"
    for plain, symbol in _TOKENS.findall(text):
        if plain or symbol == "%%":
            parts.append(_constant((plain or "%").encode()))
        elif symbol[1:] in PARTS:
            parts.append(_part(symbol[1:], form))
        else:
            known = ", ".join(f"%{each}" for each in PARTS)
            raise ValueError(f"unknown placeholder {symbol!r}; the placeholders are {known} and %%")
    return lambda topic_partition, record: b"".join(
        [part(topic_partition, record) for part in parts]
    )


def as_json(topic_partition: TopicPartition, record: Record) -> bytes:
    """One JSON object per line with all fields; `kafscale produce --format json` reads it."""
    topic, partition = topic_partition
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
    return lambda topic_partition, record: make(topic_partition, record, encode)


def _constant(text: bytes) -> Formatter:
    return lambda _topic_partition, _record: text


def _bytes(value: bytes | None, encode: Callable[[bytes], bytes]) -> bytes:
    return NULL if value is None else encode(value)


def _headers(record: Record, encode: Callable[[bytes], bytes]) -> bytes:
    return b",".join(
        header.key.encode() + b"=" + _bytes(header.value, encode) for header in record.headers
    )


_PartFormatter = Callable[[TopicPartition, Record, Callable[[bytes], bytes]], bytes]

PARTS: Final[dict[str, _PartFormatter]] = {
    "k": lambda _topic_partition, record, encode: _bytes(record.key, encode),
    "v": lambda _topic_partition, record, encode: _bytes(record.value, encode),
    "o": lambda _topic_partition, record, _encode: b"%d" % record.offset,
    "p": lambda topic_partition, _record, _encode: b"%d" % topic_partition[1],
    "t": lambda _topic_partition, record, _encode: b"%d" % record.timestamp_ms,
    "T": lambda _topic_partition, record, _encode: format_time(record.timestamp_ms).encode(),
    "n": lambda topic_partition, _record, _encode: topic_partition[0].encode(),
    "h": lambda _topic_partition, record, encode: _headers(record, encode),
}
"""Template placeholders: key, value, offset, partition, timestamp (as a number, as a time), topic
name and headers."""

_SYMBOLS: Final = {
    Field.TOPIC: "n",
    Field.KEY: "k",
    Field.OFFSET: "o",
    Field.PARTITION: "p",
    Field.TIMESTAMP: "T",
    Field.HEADERS: "h",
}
_TOKENS: Final = re.compile(r"([^%]+)|(%.?)", re.DOTALL)
