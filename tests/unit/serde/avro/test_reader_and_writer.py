"""Tests of the Avro reader and writer against fastavro, and with malicious bytes."""

import io
import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import ConfigError, InvalidRecordError
from kafscale.serde.avro import reader, writer
from kafscale.serde.avro import schema as avro_schema


def record(*fields, name="R"):
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def logical(kind, word, **more):
    return {"type": kind, "logicalType": word, **more}


def parse(schema, references=()):
    return avro_schema.parse(json.dumps(schema), map(json.dumps, references))


def encode(schema, value):
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
FOUR = {"type": "fixed", "name": "Four", "size": 4}
MOMENT = datetime(2024, 2, 29, 12, 34, 56, 789000, tzinfo=UTC)
SOME_ID = UUID("12345678-1234-5678-1234-567812345678")
MONEY = logical("bytes", "decimal", precision=9, scale=2)
PLACE = record(("x", "int"), ("y", ["null", "int"]), name="Place")
LINKED = record(("value", "int"), ("next", ["null", "Linked"]), name="Linked")

CASES = [
    ("null", None, None),
    ("boolean", True, True),
    ("int", -5, -5),
    ("long", -(2**63), -(2**63)),
    ("float", 0.5, 0.5),
    ("double", 0.1, 0.1),
    ("double", math.inf, "Infinity"),
    ("string", "ü", "ü"),
    ("bytes", b"\0\xff", "\0ÿ"),
    (FOUR, b"abc\xfe", "abcþ"),
    (COLOUR, "BLUE", "BLUE"),
    ({"type": "array", "items": "long"}, [1, -2, 300], [1, -2, 300]),
    ({"type": "map", "values": "string"}, {"a": "b"}, {"a": "b"}),
    (["null", "string"], "x", "x"),
    (["null", "string"], None, None),
    (["int", "string"], "x", {"string": "x"}),
    (["null", "string", PLACE], {"x": 1, "y": 2}, {"Place": {"x": 1, "y": 2}}),
    (PLACE, {"x": 1, "y": None}, {"x": 1, "y": None}),
    (
        record(("a", PLACE), ("b", "Place")),
        {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": None}},
        {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": None}},
    ),
    (
        LINKED,
        {"value": 1, "next": {"value": 2, "next": None}},
        {"value": 1, "next": {"value": 2, "next": None}},
    ),
    (logical("int", "date"), date(2024, 2, 29), "2024-02-29"),
    (logical("int", "time-millis"), time(12, 34, 56, 789000), "12:34:56.789"),
    (logical("long", "time-micros"), time(12, 34, 56), "12:34:56"),
    (logical("long", "timestamp-millis"), MOMENT, "2024-02-29T12:34:56.789Z"),
    (logical("long", "timestamp-micros"), MOMENT, "2024-02-29T12:34:56.789Z"),
    (
        logical("long", "local-timestamp-millis"),
        MOMENT.replace(tzinfo=None),
        "2024-02-29T12:34:56.789",
    ),
    (MONEY, Decimal("-12.30"), "-12.30"),
    (MONEY, Decimal("0.05"), "0.05"),
    (logical("fixed", "decimal", name="F", size=8, precision=12, scale=0), Decimal(77), "77"),
    (logical("string", "uuid"), SOME_ID, str(SOME_ID)),
]


@pytest.mark.parametrize(("schema", "value", "expected"), CASES)
def test_values_are_read_and_written_like_fastavro(schema, value, expected):
    payload = encode(schema, value)
    assert reader.read(parse(schema), payload) == expected
    json.dumps(expected, allow_nan=False)
    assert writer.write(parse(schema), expected) == payload


def test_nan_is_text():
    assert reader.read(parse("float"), encode("float", math.nan)) == "NaN"
    assert writer.write(parse("float"), "NaN") == encode("float", math.nan)


def test_values_without_a_text_form_stay_numbers():
    schema = parse(logical("long", "timestamp-millis"))
    far_future = 2**62
    assert reader.read(schema, writer.write(schema, far_future)) == far_future


EVERYTHING = record(
    ("flag", "boolean"),
    ("small", "int"),
    ("large", "long"),
    ("ratio", "double"),
    ("text", "string"),
    ("raw", "bytes"),
    ("maybe", ["null", "string"]),
    ("either", ["int", "string", {"type": "array", "items": "string"}]),
    ("list", {"type": "array", "items": PLACE}),
    ("map", {"type": "map", "values": "long"}),
    ("day", logical("int", "date")),
    ("moment", logical("long", "timestamp-micros")),
    ("colour", COLOUR),
)
INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
WORD = st.text(max_size=8)


@given(
    st.fixed_dictionaries(
        {
            "flag": st.booleans(),
            "small": INT,
            "large": LONG,
            "ratio": st.floats(allow_nan=False, allow_infinity=False),
            "text": WORD,
            "raw": st.binary(max_size=8),
            "maybe": st.none() | WORD,
            "either": INT | WORD | st.lists(WORD, max_size=3),
            "list": st.lists(st.fixed_dictionaries({"x": INT, "y": st.none() | INT}), max_size=3),
            "map": st.dictionaries(WORD, LONG, max_size=3),
            "day": st.dates(),
            "moment": st.datetimes(timezones=st.just(UTC)),
            "colour": st.sampled_from(["RED", "BLUE"]),
        }
    )
)
def test_round_trip(value):
    schema = parse(EVERYTHING)
    payload = encode(EVERYTHING, value)
    text = json.dumps(reader.read(schema, payload), allow_nan=False)
    assert writer.write(schema, json.loads(text)) == payload


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_rejected(junk):
    try:
        value = reader.read(parse(EVERYTHING), junk)
    except InvalidRecordError:
        return
    again = writer.write(parse(EVERYTHING), value)
    assert reader.read(parse(EVERYTHING), again) == value


EMPTY = record(name="Empty")


@pytest.mark.parametrize(
    "items",
    [
        "null",
        EMPTY,
        {"type": "fixed", "name": "Nothing", "size": 0},
        {"type": "array", "items": "null"},
    ],
    ids=str,
)
def test_huge_arrays_of_empty_elements_are_rejected(items):
    schema = parse({"type": "array", "items": items})
    payload = writer.write(parse("long"), 2**40) + b"\0" * 200_000
    with pytest.raises(InvalidRecordError, match="more than"):
        reader.read(schema, payload)


def test_exponential_schemas_are_rejected():
    fields = record(name="R0")
    for step in range(1, 40):
        fields = record(("a", fields), ("b", f"R{step - 1}"), name=f"R{step}")
    with pytest.raises(InvalidRecordError, match="more than"):
        reader.read(parse(fields), b"")


@pytest.mark.parametrize("payload", [b"\2\2" * 5000, b"\2\2" * 40])
def test_deeply_nested_values_are_rejected(payload):
    with pytest.raises(InvalidRecordError, match="deep"):
        reader.read(parse(LINKED), payload)
    with pytest.raises(InvalidRecordError, match="deep"):
        reader.read(parse(record(("self", "Loop"), name="Loop")), b"")


def test_matching_of_nested_unions_is_bounded():
    tree = record(("kid", ["Tree", {"type": "map", "values": "Tree"}]), name="Tree")
    value = {"wrong": 1}
    for _ in range(30):
        value = {"kid": {"Tree": value}}
    with pytest.raises(Exception, match=r"steps|none of"):
        writer.write(parse(tree), value)


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (PLACE, {"x": 1}, "at y: the field is missing"),
        (PLACE, {"x": 1, "y": 2, "z": 3}, "has no field z"),
        (PLACE, {"x": "one", "y": 2}, "at x: 'one' is not a valid int"),
        (PLACE, {"x": 2**31, "y": 2}, "exceeds 32 bits"),
        (PLACE, {"x": True, "y": 2}, "is not a valid int"),
        (PLACE, [], "not an object"),
        ({"type": "array", "items": "int"}, [1, None], "at 1: None is not a valid int"),
        ({"type": "map", "values": "int"}, {"a": "b"}, "at a"),
        ("bytes", "€", "from .u0000"),
        (FOUR, "abc", "3 bytes instead of 4"),
        (COLOUR, "GREEN", "none of RED, BLUE"),
        (MONEY, "1.234", "after the point"),
        (MONEY, "12345678901", "more than 9 digits"),
        (MONEY, "much", "not a decimal"),
        (logical("int", "date"), "tomorrow", "is not a valid int"),
        (["int", "string"], 1.5, "none of int, string"),
        ("double", "1.5", "not a number"),
    ],
)
def test_mismatches_are_reported_with_their_path(schema, value, reason):
    with pytest.raises(InvalidRecordError, match=reason):
        writer.write(parse(schema), value)


def test_missing_fields_get_their_default():
    schema = PLACE | {"fields": [{"name": "x", "type": "int", "default": 7}]}
    assert writer.write(parse(schema), {}) == b"\x0e"


@pytest.mark.parametrize(
    ("schema", "payload", "reason"),
    [
        ("int", b"\xff\xff\xff\xff\xff\x1f", "exceeds 32 bits"),
        ("long", b"\xff" * 9 + b"\x7f", "exceeds 64 bits"),
        ("long", b"\x80" * 1000, "ends within a number"),
        ("boolean", b"\x07", "invalid boolean 7"),
        (["null", "string"], b"\x01\x02a", "invalid index -1"),
        (COLOUR, b"\x04", "invalid index 2"),
        ("string", b"\x08abc", "ends within a field of 4 bytes"),
        ("bytes", b"\x01", "field of -1 bytes"),
        ("string", b"\x02\xff", "not UTF-8"),
    ],
)
def test_damaged_bytes_are_rejected(schema, payload, reason):
    with pytest.raises(InvalidRecordError, match=reason):
        reader.read(parse(schema), payload)


def test_trailing_bytes_are_rejected():
    with pytest.raises(InvalidRecordError, match="2 bytes are left"):
        reader.read(parse("int"), b"\0\0\0")


def test_schemas_with_references():
    schema = parse(record(("at", "Place"), name="Order"), [PLACE])
    assert reader.read(schema, b"\2\0") == {"at": {"x": 1, "y": None}}


@pytest.mark.parametrize("text", ["", "{", "[]x", '{"type": "wreck"}', "no-such-type"])
def test_invalid_schemas_are_rejected(text):
    with pytest.raises(ConfigError, match="invalid Avro schema"):
        avro_schema.parse(text)


@pytest.mark.parametrize(
    "schema",
    [
        record(({"x": 1}, "int")),
        record(("a", [record((1, "int"), name="Inner")])),
        {"type": "fixed", "name": "Four", "size": "x"},
        {"type": "enum", "name": "Colour", "symbols": "RED"},
        {"type": "array", "items": logical("int", {"a": 1})},
        {"type": "map", "values": logical("bytes", ["decimal"])},
    ],
)
def test_attributes_of_a_wrong_type_are_rejected(schema):
    """They would raise while a value is read."""
    with pytest.raises(ConfigError, match="invalid Avro schema"):
        parse(schema)


def test_attributes_that_are_null_are_ignored():
    assert reader.read(parse(logical("int", None)), b"\2") == 1
