"""The fast JSON reader agrees with the exact one, or gives up."""

import json

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafscale.spark.values import ddl
from kafscale.spark.values.base import decode_rows, nullable
from kafscale.spark.values.json_columns import BRACKETS_MAX, ColumnReader
from kafscale.spark.values.json_rows import RowReader
from services.for_each import for_each

SCHEMA = ddl.parse(
    "a long, b string, c double, d struct<x: int, y: array<string>>, e array<struct<z: boolean>>,"
    "f float, g date, h timestamp, i decimal(10,2), j tinyint"
)
FRAGMENTS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b"\n",
    b" ",
    b"\0",
    b"\\",
    b"1",
    b"-",
    b"0.5",
    b"null",
    b"NaN",
    b"1e40",
    b"true",
    b'"a":',
    b'"b":',
    b'"c":',
    b'"f":',
    b'"x"',
    b"\xff",
    b'{"a":1}',
    b"{}",
    b'{"b":"',
    b'"}',
    b'{"d":{"x":1}}',
    "ü".encode(),
    b"\xef\xbb\xbf",
]
EDGE_VALUES = [
    "NaN",
    "1e400",
    "1e40",
    "3.4028235677973366e38",
    "-0.0",
    "1.0",
    "1e2",
    "9223372036854775808",
    "12345678901234567890",
    '"5"',
    "true",
    "{}",
    "[]",
    "[null]",
    '"\\ud800"',
    '"\\u0000"',
    '"2024-01-01"',
    '"0000-01-01"',
    '"2024-01-01T00:00"',
    '"2024-01-01T10:00:00+02:00"',
    '"2024-01-01 10:00:00"',
    '"9999-12-31T23:59:59-05:00"',
    '"0000-01-01T00:00:00Z"',
    '"0001-01-01T00:00:00+05:00"',
    '"12.34"',
    "12.345",
    "123456789.5",
    "300",
    "null",
    '{"x":1,"x":2}',
    '{"y":["p",null],"q":[[1]]}',
    '[{"z":true},null]',
]
"""Values that are valid, or nearly, for some field of the schema."""


def read_exactly(values, schema=SCHEMA):
    return decode_rows(values, RowReader(schema).read, lambda: nullable(schema))


def check_agreement(values, schema=SCHEMA):
    """Return whether the fast reader succeeds; compare it with the exact one then."""
    values = pa.array(values, pa.binary())
    table = ColumnReader(schema).read(values)
    if table is None:
        return False
    decoded = read_exactly(values, schema)
    assert decoded.bad == []
    assert table.schema == decoded.table.schema
    assert str(table.to_pylist()) == str(decoded.table.to_pylist())  # As text: -0.0 is not 0.0.
    return True


@given(st.lists(st.lists(st.sampled_from(FRAGMENTS), max_size=6).map(b"".join), max_size=5))
@example([b'{"b":"}', b'{","a":1}', b"{}{}"])
@example([b"{}{}", b" "])
@example([b"{}{}", b"{}\0}", b"{}"])
@example([b'{"a":1', b"}", b"{}"])
@example([b'{"b":{"a":1}', b"{}{}"])
@example([b"\xef\xbb\xbf{}"])
@settings(max_examples=400)
def test_readers_agree_on_any_bytes(values):
    check_agreement(values)


@given(st.lists(st.tuples(st.sampled_from(SCHEMA.names), st.sampled_from(EDGE_VALUES)), max_size=4))
@settings(max_examples=600)
def test_readers_agree_on_any_objects(fields):
    check_agreement(
        [("{" + ",".join(f'"{name}":{value}' for name, value in fields) + "}").encode()]
    )


@for_each(f'{{"{name}":{value}}}' for name in SCHEMA.names for value in EDGE_VALUES)
def test_readers_agree_on_edge_values(text):
    check_agreement([text.encode(), b"{}"])


def test_fast_reader_accepts_valid_values():
    row = {
        "a": 1,
        "b": "x\ny",
        "c": 0.1,
        "d": {"x": 5, "y": ["p", None]},
        "e": [{"z": True}],
        "f": 1.5,
        "g": "2024-02-29",
        "h": "2024-02-29T12:34:56.789Z",
        "i": "12.34",
        "j": -128,
        "unknown": [{"deep": [1, "two"]}],
    }
    text = json.dumps(row).encode()
    assert check_agreement(
        [text, None, b"{}", b" \n" + text + b"\r\n", json.dumps(row, indent=2).encode()]
    )


def test_rows_keep_their_position_among_nulls():
    values = pa.array([None, b'{"a":1}', None, None, b'{"a":2}'], pa.binary())
    table = ColumnReader(ddl.parse("a long")).read(values)
    assert table.column(0).to_pylist() == [None, 1, None, None, 2]
    sliced = ColumnReader(ddl.parse("a long")).read(values.slice(1, 3))
    assert sliced.column(0).to_pylist() == [1, None, None]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("a long not null", b'{"a":null}'),
        ("a long not null", b"{}"),
        ("a struct<x: int not null>", b'{"a":{}}'),
        ("a binary", b'{"a":"AQ=="}'),
        ("a map<string, int>", b'{"a":{"k":1}}'),
        ("a array<date>", b'{"a":[5]}'),
        ("a long", b'{"a":1,"x":NaN}'),
        ("a long", b'{"a":1,"x":' + b"[" * BRACKETS_MAX + b"]" * BRACKETS_MAX + b"}"),
    ],
)
def test_fast_reader_gives_up_on_doubtful_values(schema, value):
    assert ColumnReader(ddl.parse(schema)).read(pa.array([value], pa.binary())) is None


def test_deep_nesting_is_invalid():
    """Arrow's reader would crash the process."""
    deep = b'{"k":' + b"[" * 500_000 + b"]" * 500_000 + b"}"
    decoded = read_exactly(pa.array([deep, b'{"a":1}'], pa.binary()))
    assert [bad.reason for bad in decoded.bad] == ["the value is nested too deeply"]
    assert not check_agreement([deep])
