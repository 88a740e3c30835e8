"""Formats of printed records."""

import json

import pytest

from kafscale.cli.commands.consume import format as consume_format
from kafscale.cli.commands.consume.format import Field
from kafscale.cli.commands.produce.input import LineParser
from kafscale.cli.options import Format
from kafscale.records import Header, Record

RECORD = Record(42, 1_700_000_000_123, b"key", b"val\xff", (Header("a", b"1"), Header("b", None)))
EMPTY = Record(43, -1, None, None)
TOPIC_PARTITION = ("orders", 0)


def test_values_are_printed_unchanged():
    formatted = consume_format.by_fields(Format.TEXT, [])
    assert formatted(TOPIC_PARTITION, RECORD) == b"val\xff\n"
    assert formatted(TOPIC_PARTITION, EMPTY) == b"null\n"


def test_fields_precede_the_value_in_the_given_order():
    fields = [Field.TOPIC, Field.PARTITION, Field.OFFSET, Field.TIMESTAMP, Field.HEADERS, Field.KEY]
    formatted = consume_format.by_fields(Format.HEX, fields)
    assert formatted(("orders", 5), RECORD) == (
        b"orders\t5\t42\t2023-11-14T22:13:20.123Z\ta=31,b=null\t6b6579\t76616cff\n"
    )


def test_template_placeholders():
    formatted = consume_format.by_template(Format.BASE64, r"%n %p/%o\t%t %T [%h] %k=%v 100%%")
    assert formatted(("orders", 7), RECORD) == (
        b"orders 7/42\t1700000000123 2023-11-14T22:13:20.123Z [a=MQ==,b=null] a2V5=dmFs/w== 100%\n"
    )


def test_template_gets_a_newline_if_it_has_none():
    assert consume_format.by_template(Format.TEXT, r"%o\n")(TOPIC_PARTITION, RECORD) == b"42\n"
    assert consume_format.by_template(Format.TEXT, "%o")(TOPIC_PARTITION, RECORD) == b"42\n"


@pytest.mark.parametrize("template", ["%q", "%o %", "100% sure"])
def test_unknown_placeholder_is_rejected(template):
    with pytest.raises(ValueError, match=r"unknown placeholder .*; the placeholders are %k, %v"):
        consume_format.by_template(Format.TEXT, template)


def test_json_has_all_fields_and_can_be_produced():
    line = consume_format.as_json(("orders", 3), RECORD)
    assert json.loads(line) == {
        "topic": "orders",
        "partition": 3,
        "offset": 42,
        "timestamp": 1_700_000_000_123,
        "key": "key",
        "value": {"base64": "dmFs/w=="},
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
    }
    again = LineParser(Format.JSON).parse(1, line)
    assert again == (1, RECORD.key, RECORD.value, RECORD.headers, RECORD.timestamp_ms, 3)
