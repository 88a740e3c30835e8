"""Tests of the Avro decoder, with and without a registry."""

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import ConfigError, StoreUnavailableError
from kafscale.serde.registry.client import Registry, RegistryAccess
from kafscale.spark.values.avro_decoder import AvroDecoder, AvroRegistryDecoder, AvroSchema
from kafscale.spark.values.base import TIMESTAMP, list_of
from services.schema_registry import serving


def record(*fields, name="R"):
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def logical(kind, word, **more):
    return {"type": kind, "logicalType": word, **more}


def encode(schema, value):
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def decoder(schema):
    return AvroDecoder(AvroSchema(json.dumps(schema)))


def binary(*values):
    return pa.array(values, pa.binary())


MOMENT = datetime(2024, 2, 29, 12, 34, 56, 789000, tzinfo=UTC)
SOME_ID = UUID("12345678-1234-5678-1234-567812345678")
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
TWO_OR_MORE = ["null", "int", record(("x", "string"), name="X")]


@pytest.mark.parametrize(
    ("avro", "arrow", "value", "read"),
    [
        ("boolean", pa.bool_(), True, True),
        ("int", pa.int32(), -5, -5),
        ("long", pa.int64(), 2**62, 2**62),
        ("float", pa.float32(), 0.5, 0.5),
        ("double", pa.float64(), 0.1, 0.1),
        ("bytes", pa.binary(), b"\xff", b"\xff"),
        ("string", pa.string(), "ü", "ü"),
        ("null", pa.string(), None, None),
        (COLOUR, pa.string(), "BLUE", "BLUE"),
        ({"type": "fixed", "name": "F", "size": 2}, pa.binary(), b"ab", b"ab"),
        ({"type": "string"}, pa.string(), "x", "x"),
        (["null"], pa.string(), None, None),
        (["null", "int"], pa.int32(), None, None),
        (["int", "null"], pa.int32(), 5, 5),
        (["string"], pa.string(), "x", "x"),
        (TWO_OR_MORE, pa.string(), None, None),
        (TWO_OR_MORE, pa.string(), 5, "5"),
        (TWO_OR_MORE, pa.string(), {"x": "y"}, '{"x":"y"}'),
        (["int", "string"], pa.string(), "x", '"x"'),
        ({"type": "array", "items": "int"}, list_of(pa.int32()), [1, 2], [1, 2]),
        (
            {"type": "array", "items": ["null", logical("string", "uuid")]},
            list_of(pa.string()),
            [SOME_ID, None],
            [str(SOME_ID), None],
        ),
        ({"type": "map", "values": "long"}, pa.map_(pa.string(), pa.int64()), {"k": 1}, [("k", 1)]),
        (
            {"type": "map", "values": TWO_OR_MORE},
            pa.map_(pa.string(), pa.string()),
            {"k": 1, "l": None},
            [("k", "1"), ("l", None)],
        ),
        (
            record(("x", "int"), ("u", logical("string", "uuid")), name="Inner"),
            pa.struct([("x", pa.int32()), ("u", pa.string())]),
            {"x": 1, "u": SOME_ID},
            {"x": 1, "u": str(SOME_ID)},
        ),
        (record(name="Nothing"), pa.string(), {}, "{}"),
        (logical("int", "date"), pa.date32(), date(2024, 2, 29), date(2024, 2, 29)),
        (logical("int", "time-millis"), pa.time64("us"), time(1, 2, 3), time(1, 2, 3)),
        (logical("long", "time-micros"), pa.time64("us"), time(1, 2, 3, 4), time(1, 2, 3, 4)),
        (logical("long", "timestamp-millis"), TIMESTAMP, MOMENT, MOMENT),
        (logical("long", "timestamp-micros"), TIMESTAMP, MOMENT, MOMENT),
        (logical("long", "timestamp-nanos"), pa.int64(), 5, 5),
        (
            logical("long", "local-timestamp-millis"),
            pa.timestamp("us"),
            MOMENT.replace(tzinfo=None),
            MOMENT.replace(tzinfo=None),
        ),
        (
            logical("bytes", "decimal", precision=6, scale=2),
            pa.decimal128(6, 2),
            Decimal("-12.34"),
            Decimal("-12.34"),
        ),
        (
            logical("fixed", "decimal", name="D", size=8, precision=6, scale=2),
            pa.decimal128(6, 2),
            Decimal("1.50"),
            Decimal("1.50"),
        ),
        (
            logical("bytes", "decimal", precision=40, scale=0),
            pa.string(),
            Decimal(10**39),
            "1" + "0" * 39,
        ),
        (logical("string", "uuid"), pa.string(), SOME_ID, str(SOME_ID)),
        (logical("string", "of my own"), pa.string(), "x", "x"),
    ],
)
def test_avro_types_map_to_arrow_types(avro, arrow, value, read):
    schema = record(("a", avro))
    subject = decoder(schema)
    assert subject.schema == pa.schema([("a", arrow)])
    decoded = subject.decode(binary(encode(schema, {"a": value}), None))
    assert decoded.bad == []
    assert decoded.table.schema == subject.schema
    assert decoded.table.to_pylist() == [{"a": read}, {"a": None}]


def test_a_value_that_is_not_a_record_is_one_column():
    decoded = decoder("long").decode(binary(encode("long", 5), None))
    assert decoded.table.to_pylist() == [{"value": 5}, {"value": None}]
    assert AvroDecoder(AvroSchema("long")).schema == pa.schema([("value", pa.int64())])


LIST = record(("next", ["null", "Node"]), ("v", "int"), name="Node")


def test_recursive_types_become_text():
    decoded = decoder(LIST).decode(binary(encode(LIST, {"next": {"next": None, "v": 2}, "v": 1})))
    assert decoded.table.to_pylist() == [{"next": '{"next":null,"v":2}', "v": 1}]


def test_deep_recursion_makes_only_its_record_invalid():
    """The compiled reader of fastavro would crash the process."""
    decoded = decoder(LIST).decode(binary(b"\x02" * 300_000, encode(LIST, {"next": None, "v": 1})))
    assert decoded.good.to_pylist() == [False, True]
    assert "RecursionError" in decoded.bad[0].reason


ORDER = record(
    ("id", "long"),
    ("name", "string"),
    ("tags", {"type": "array", "items": "string"}),
    ("at", logical("long", "timestamp-millis")),
    ("day", logical("int", "date")),
    ("kind", COLOUR),
    ("price", logical("bytes", "decimal", precision=4, scale=2)),
)
GOOD = {
    "id": 1,
    "name": "x",
    "tags": ["a"],
    "at": MOMENT,
    "day": date(2024, 2, 29),
    "kind": "RED",
    "price": Decimal("1.50"),
}


@given(st.binary(max_size=60))
def test_invalid_bytes_do_not_affect_other_records(junk):
    good = encode(ORDER, GOOD)
    decoded = decoder(ORDER).decode(binary(good, junk, None, good[:-1], good + b"\0"))
    assert decoded.good.to_pylist()[0::2] == [True, True, False]
    assert decoded.table.to_pylist()[0] == GOOD
    assert {bad.row for bad in decoded.bad} >= {3, 4}
    assert all(0 < len(bad.reason) <= 200 for bad in decoded.bad)


def test_trailing_bytes_are_invalid():
    decoded = decoder("long").decode(binary(b"\x02\x02\x02"))
    assert decoded.bad[0].reason == "2 bytes are left after the value"


def test_a_number_out_of_range_is_reported_with_its_column():
    schema = record(("small", "int"))
    decoded = decoder(schema).decode(binary(encode(record(("small", "long")), {"small": 2**40})))
    assert decoded.bad[0].reason.startswith("small: ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nonsense",
        "[]",
        "5",
        '{"type":"record"}',
        json.dumps(record(("a", "Unknown"))),
        json.dumps(record()),
        json.dumps({"type": "array", "items": "null"}),
        json.dumps({"type": "array", "items": record(("a", "null"))}),
        '{"type":"enum"}',
    ],
)
def test_invalid_schemas_are_rejected(text):
    with pytest.raises(ConfigError, match="schema"):
        AvroSchema(text)


# --- with a registry ------------------------------------------------------------------------------

OLD = record(("id", "int"), ("gone", "string"))
NEW = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": "string", "default": "none"},
    ],
}


def framed(schema_id, schema, value):
    return b"\0" + schema_id.to_bytes(4, "big") + encode(schema, value)


@pytest.fixture(scope="module")
def server():
    with serving() as registry:
        registry.register(1, json.dumps(OLD))
        registry.register(2, json.dumps(NEW))
        registry.register(3, 'syntax = "proto3";', kind="PROTOBUF")
        registry.register(4, "{nonsense")
        registry.register(5, json.dumps(record(("x", "int"), name="Inner")), subject="inner")
        registry.register(
            6,
            json.dumps(record(("inner", "Inner"), ("again", ["null", "Inner"]))),
            references=[{"name": "Inner", "subject": "inner", "version": 5}],
        )
        registry.register(7, json.dumps(record(("id", "string"))))
        yield registry


def registry_decoder(server, reader=None):
    registry = Registry(RegistryAccess(url=server.url), sleep=[].append)
    return AvroRegistryDecoder(registry, None if reader is None else AvroSchema(json.dumps(reader)))


def test_values_are_resolved_to_the_reader_schema(server):
    subject = registry_decoder(server, NEW)
    assert subject.schema == pa.schema([("id", pa.int64()), ("note", pa.string())])
    decoded = subject.decode(
        binary(framed(1, OLD, {"id": 1, "gone": "x"}), framed(2, NEW, {"id": 2, "note": "y"}))
    )
    assert decoded.table.to_pylist() == [{"id": 1, "note": "none"}, {"id": 2, "note": "y"}]


def test_columns_grow_without_a_reader_schema(server):
    subject = registry_decoder(server)
    assert subject.schema is None
    assert subject.decode(binary(None)).table.num_rows == 1
    first = subject.decode(binary(framed(1, OLD, {"id": 1, "gone": "x"})))
    assert first.table.schema == pa.schema([("id", pa.int32()), ("gone", pa.string())])
    both = subject.decode(
        binary(framed(2, NEW, {"id": 2**40, "note": "y"}), framed(1, OLD, {"id": 1, "gone": "x"}))
    )
    assert subject.schema.field("id").type == pa.int64()
    assert both.table.to_pylist() == [
        {"id": 2**40, "gone": None, "note": "y"},
        {"id": 1, "gone": "x", "note": None},
    ]
    conflict = subject.decode(binary(framed(7, record(("id", "string")), {"id": "x"})))
    assert conflict.bad[0].reason.startswith("id: ")


def test_schemas_with_references(server):
    inner = record(("x", "int"), name="Inner")
    schema = record(("inner", inner), ("again", ["null", "Inner"]))
    decoded = registry_decoder(server).decode(
        binary(framed(6, schema, {"inner": {"x": 1}, "again": {"x": 2}}))
    )
    assert decoded.table.to_pylist() == [{"inner": {"x": 1}, "again": {"x": 2}}]


def test_invalid_frames_and_schemas_do_not_affect_other_records(server):
    decoded = registry_decoder(server, NEW).decode(
        binary(
            framed(2, NEW, {"id": 1, "note": "x"}),
            b"\0\0\0\0\3rest",
            b"\0\0\0\0\4rest",
            b"\0\0\0\0\x63rest",
            b"\1\0\0\0\2rest",
            b"",
            b"\0\0\0\0\2",
            framed(7, record(("id", "string")), {"id": "x"}),
        )
    )
    assert decoded.good.to_pylist() == [True] + [False] * 7
    reasons = [bad.reason for bad in decoded.bad]
    assert reasons[0] == "schema 3: expected an AVRO schema, not PROTOBUF"
    assert reasons[1].startswith("schema 4: invalid Avro schema")
    assert reasons[2] == "schema 99 is not in the registry"
    assert "names no schema" in reasons[3]
    assert "too few" in reasons[4]
    assert all(reason.startswith("the value does not match the schema") for reason in reasons[5:])


def test_an_unavailable_registry_raises(server):
    subject = registry_decoder(server)
    server.failures = [503] * 10
    try:
        with pytest.raises(StoreUnavailableError):
            subject.decode(binary(framed(1, OLD, {"id": 1, "gone": "x"})))
    finally:
        server.failures = []
