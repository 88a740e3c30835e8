"""Tests of the JSON decoder: valid and invalid values, and growing schemas."""

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.spark.values import ddl
from kafscale.spark.values.json_decoder import JsonDecoder


def binary(*values):
    return pa.array(values, pa.binary())


def decode(schema, *values):
    return JsonDecoder(ddl.parse(schema)).decode(binary(*values))


TEXTS = st.text(st.characters(codec="utf-8"))
POINTS = st.fixed_dictionaries({"x": st.integers(-128, 127), "y": st.none() | st.booleans()})
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "flag": st.none() | st.booleans(),
        "count": st.none() | st.integers(-(2**63), 2**63 - 1),
        "share": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "name": st.none() | TEXTS,
        "day": st.none() | st.dates(),
        "tags": st.none() | st.lists(st.none() | TEXTS),
        "point": st.none() | POINTS,
        "counts": st.none() | st.dictionaries(TEXTS, st.integers(0, 9)),
        "blob": st.none() | st.binary(),
    },
)


def encode(row):
    return json.dumps(row, default=as_text).encode()


def as_text(value):
    return str(value) if isinstance(value, date) else base64.b64encode(value).decode()


def expected_value(name, value):
    """Arrow returns maps as pairs."""
    return list(value.items()) if name == "counts" and value is not None else value


@pytest.mark.parametrize("more", ["", ", counts map<string, int>, blob binary"])
@given(rows=st.lists(st.none() | ROWS, max_size=6))
def test_rows_read_back_equal(more, rows):
    decoder = JsonDecoder(
        ddl.parse(
            "flag boolean, count long, share double, name string, day date, tags array<string>,"
            "point struct<x: tinyint, y: boolean>" + more
        )
    )
    values = [None if row is None else encode(row) for row in rows]
    decoded = decoder.decode(binary(*values))
    assert decoded.bad == []
    assert decoded.good.to_pylist() == [True] * len(rows)
    assert decoded.table.schema == decoder.schema
    assert decoded.table.to_pylist() == [
        {name: expected_value(name, (row or {}).get(name)) for name in decoder.schema.names}
        for row in rows
    ]


BAD = [
    ("a long", b'{"a":"x"}', "a: expected int | null, got str"),
    ("a long", b'{"a":1.5}', "a: expected int | null, got float"),
    ("a int", b'{"a":2147483648}', "a: expected int <= 2147483647"),
    ("a tinyint", b'{"a":-129}', "a: expected int >= -128"),
    ("a long", b'{"a":9223372036854775808}', "a: expected int <= 9223372036854775807"),
    ("a float", b'{"a":1e40}', "a: expected float <"),
    ("a boolean", b'{"a":1}', "a: expected bool | null, got int"),
    ("a decimal(4,2)", b'{"a":123.45}', "a: "),
    ("a decimal(4,2)", b'{"a":1.234}', "a: "),
    ("a decimal(4,2)", b'{"a":"NaN"}', "a: "),
    ("a date", b'{"a":"yesterday"}', "a: invalid RFC3339 encoded date"),
    ("a timestamp", b'{"a":"now"}', "a: not an ISO 8601 timestamp"),
    ("a timestamp", b'{"a":5}', "a: expected str | null, got int"),
    ("a binary", b'{"a":"%"}', "a: invalid base64 encoded string"),
    ("a long not null", b"{}", "object missing required field a"),
    ("a long not null", b'{"a":null}', "a: expected int, got null"),
    ("a string not null", b"{}", "a: the field is missing or null"),
    ("a string not null", b'{"a":null}', "a: the field is missing or null"),
    ("a struct<b: struct<c: int>>", b'{"a":{"b":{"c":"x"}}}', "a.b.c: expected int | null"),
    ("a struct<b: timestamp>", b'{"a":{"b":"x"}}', "a.b: not an ISO 8601 timestamp"),
    ("a array<timestamp>", b'{"a":[null,"x"]}', "a[1]: not an ISO 8601 timestamp"),
    ("a map<string, timestamp>", b'{"a":{"k":"x"}}', "a.k: not an ISO 8601 timestamp"),
    ("a array<int>", b'{"a":{}}', "a: expected array | null, got object"),
    ("a long", b'{"a":1', "input data was truncated"),
    ("a long", b"", "input data was truncated"),
    ("a long", b"[1]", "expected object, got array"),
    ("a long", b"null", "expected object, got null"),
    ("a long", b'{"a":1}{"a":2}', "JSON is malformed: trailing characters"),
    ("a long", b'{"a":NaN}', "JSON is malformed: invalid character"),
    ("a string", b'{"a":"\xff"}', "a: the value is not UTF-8"),
    ("a string", b'{"a":["\xff"]}', "a: the value is not UTF-8"),
]


@pytest.mark.parametrize(("schema", "value", "reason"), BAD)
def test_invalid_values_are_reported_and_do_not_affect_others(schema, value, reason):
    decoded = decode(schema, None, value, None, value)
    assert decoded.good.to_pylist() == [True, False, True, False]
    assert decoded.table.to_pylist() == [{"a": None}] * 2
    assert [bad.row for bad in decoded.bad] == [1, 3]
    assert decoded.bad[0].reason.startswith(reason)


@pytest.mark.parametrize("other", [b"{}", b"{"])
@pytest.mark.parametrize(
    ("text", "read"),
    [
        (b'"x"', "x"),
        (b"5", "5"),
        (b"1.50", "1.50"),
        (b"true", "true"),
        (b'{"k": [1, null]}', '{"k": [1, null]}'),
        (b"[]", "[]"),
        (b"null", None),
        (b'"\\u00fc"', "ü"),
    ],
)
def test_string_columns_accept_any_value(other, text, read):
    decoded = decode("a string, b array<string>", b'{"a":%b,"b":[%b,"y"]}' % (text, text), other)
    assert decoded.table.to_pylist()[0] == {"a": read, "b": [read, "y"]}


@pytest.mark.parametrize("other", [b"{}", b"{"])
@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2024-02-29T12:34:56Z", datetime(2024, 2, 29, 12, 34, 56, tzinfo=UTC)),
        ("2024-02-29T12:34:56.123456+02:00", datetime(2024, 2, 29, 10, 34, 56, 123456, UTC)),
        ("2024-02-29 12:34:56", datetime(2024, 2, 29, 12, 34, 56, tzinfo=UTC)),
        ("2024-02-29T12:34Z", datetime(2024, 2, 29, 12, 34, tzinfo=UTC)),
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_timestamps_do_not_depend_on_other_records(other, text, read):
    decoded = decode("a timestamp", json.dumps({"a": text}).encode(), other)
    assert decoded.table.to_pylist()[0] == {"a": read}


def test_decimals_are_numbers_or_strings():
    decoded = decode("a decimal(5,2)", b'{"a":1.5}', b'{"a":"1.50"}', b'{"a":-999.99}', b"{")
    assert decoded.table.column("a").to_pylist() == [Decimal("1.50")] * 2 + [Decimal("-999.99")]


def test_reasons_are_shortened():
    decoded = decode("a decimal(4,2)", b'{"a":"%b"}' % (b"9" * 10_000))
    assert len(decoded.bad[0].reason) <= 200


def test_columns_are_nullable_even_if_values_are_not():
    decoder = JsonDecoder(ddl.parse("a long not null, b struct<c: int not null>"))
    assert decoder.schema == ddl.parse("a long, b struct<c: int>")
    assert decoder.decode(binary(None, b'{"a":1}')).table.column("a").to_pylist() == [None, 1]


def test_a_decoder_without_a_schema_grows():
    decoder = JsonDecoder()
    assert decoder.schema is None
    assert decoder.decode(binary(None)).table.num_rows == 1
    first = decoder.decode(binary(b'{"a":1,"n":null}', b'{"b":{"x":"p"}}'))
    assert first.table.schema == ddl.parse("a long, b struct<x: string>")
    second = decoder.decode(binary(b'{"a":"x"}', b'{"b":{"y":true},"n":0.5}', b'{"a":7}'))
    assert decoder.schema == ddl.parse("a long, b struct<x: string, y: boolean>, n double")
    assert [(bad.row, bad.reason) for bad in second.bad] == [(0, "a: expected int | null, got str")]
    assert second.table.to_pylist() == [
        {"a": None, "b": {"x": None, "y": True}, "n": 0.5},
        {"a": 7, "b": None, "n": None},
    ]


def test_a_schema_grows_only_if_enabled():
    value = binary(b'{"a":1,"b":2}')
    assert JsonDecoder(ddl.parse("a int")).decode(value).table.to_pylist() == [{"a": 1}]
    growing = JsonDecoder(ddl.parse("a int"), grows=True)
    assert growing.decode(value).table.schema == ddl.parse("a long, b long")


def test_framed_values():
    frame = b"\0\0\0\0\7"
    decoder = JsonDecoder(ddl.parse("a int"), is_framed=True)
    good = decoder.decode(binary(frame + b'{"a":1}', None, frame + b'{"a":2}'))
    assert good.table.column("a").to_pylist() == [1, None, 2]
    mixed = decoder.decode(binary(frame + b'{"a":1}', b'{"a":2}', None, b"\0", frame))
    assert mixed.good.to_pylist() == [True, False, True, False, False]
    assert mixed.table.column("a").to_pylist() == [1, None]
    assert "names no schema" in mixed.bad[0].reason


def test_framed_values_without_a_schema():
    decoder = JsonDecoder(is_framed=True)
    decoded = decoder.decode(binary(b'\0\0\0\0\7{"a":1}', b"{}", None))
    assert decoded.table.to_pylist() == [{"a": 1}, {"a": None}]


def test_no_values():
    assert decode("a int").table.schema == ddl.parse("a int")
    assert JsonDecoder().decode(binary()).table.num_rows == 0
