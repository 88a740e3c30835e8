"""Tests of value specs and of the decoders created from them."""

import json
import pickle

import pyarrow as pa
import pytest

from kafscale.errors import ConfigError
from kafscale.serde.registry.protobuf_compiler import compile_source
from kafscale.spark.values import RegistryAccess, ValueSpec, create_decoder, ddl, pin_schema
from services.schema_registry import serving

PROTO = 'syntax = "proto3"; message First { int32 a = 1; } message Last { string b = 1; }'
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
PASSWORD = "hidden"  # noqa: S105
UNREACHABLE = RegistryAccess(url="http://127.0.0.1:9", user="u", password=PASSWORD)
FRAME = b"\0\0\0\0\1"


def decoded(spec, *values):
    """Decode like a task, with a pickled spec."""
    unpickled = pickle.loads(pickle.dumps(spec))  # noqa: S301
    assert unpickled == spec
    return create_decoder(unpickled, sleep=[].append).decode(pa.array(values, pa.binary()))


@pytest.mark.parametrize(
    ("spec", "value", "row"),
    [
        (ValueSpec(), b"\xff", {"value": b"\xff"}),
        (ValueSpec(format="json"), b'{"a":1}', {"a": 1}),
        (ValueSpec(format="json", schema="a string"), b'{"a":"x","b":1}', {"a": "x"}),
        (ValueSpec(format="json", schema="a int", grows=True), b'{"b":1}', {"a": None, "b": 1}),
        (ValueSpec(format="json", registry=UNREACHABLE), FRAME + b'{"a":1}', {"a": 1}),
        (ValueSpec(format="avro", schema=RECORD), b"\x02", {"a": 1}),
        (
            ValueSpec(
                format="avro",
                schema='{"type":"record","name":"S","fields":[{"name":"r","type":"R"}]}',
                references=(RECORD,),
            ),
            b"\x02",
            {"r": {"a": 1}},
        ),
        (ValueSpec(format="protobuf", schema=PROTO), b"\x08\x01", {"a": 1}),
        (ValueSpec(format="protobuf", schema=PROTO, message="Last"), b"\x0a\x01x", {"b": "x"}),
    ],
)
def test_pickled_specs_of_every_format(spec, value, row):
    result = decoded(spec, value, None)
    assert result.bad == []
    assert result.table.to_pylist() == [row, dict.fromkeys(row)]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"format": "xml"}, "unknown format xml; the formats are raw, json, avro, protobuf"),
        ({"schema": "a int"}, "raw values have no schema"),
        ({"format": "json", "message": "M"}, "for protobuf"),
        ({"format": "avro"}, "needs a schema or a registry"),
        ({"format": "protobuf"}, "needs a schema or a registry"),
        ({"format": "avro", "schema": "int", "grows": True}, "only the schema of JSON"),
        ({"format": "json", "references": ("x",)}, "references"),
        ({"format": "protobuf", "schema": "x", "descriptors": b"x"}, "cannot both"),
        ({"format": "avro", "schema": "int", "subject": "s"}, "a subject needs"),
        ({"format": "protobuf", "registry": UNREACHABLE, "message": "M"}, "a message needs"),
    ],
)
def test_inconsistent_specs_are_rejected(fields, reason):
    with pytest.raises(ConfigError, match=reason):
        ValueSpec(**fields)


def test_create_decoder_rejects_invalid_schemas():
    for format_ in ("json", "avro", "protobuf"):
        with pytest.raises(ConfigError):
            create_decoder(ValueSpec(format=format_, schema="(nonsense)"))


def test_repr_shows_no_secrets():
    assert "hidden" not in repr(ValueSpec(format="avro", registry=UNREACHABLE))


def test_pin_schema_fixes_the_newest_avro_schema():
    """The driver requests it once; later versions have no effect."""
    with serving() as server:
        server.register(1, RECORD, subject="s")
        spec = ValueSpec(format="avro", registry=RegistryAccess(url=server.url), subject="s")
        pinned = pin_schema(spec)
        assert pinned.schema == RECORD
        newer = json.loads(RECORD)
        newer["fields"].append({"name": "b", "type": "string", "default": "x"})
        server.register(2, json.dumps(newer), subject="s")
        assert decoded(pinned, FRAME + b"\x02").table.to_pylist() == [{"a": 1}]
        assert server.requests.count("/subjects/s/versions/latest") == 1
        assert decoded(spec, FRAME + b"\x02").table.to_pylist() == [{"a": 1, "b": "x"}]


def test_pin_schema_fixes_protobuf_descriptors():
    with serving() as server:
        server.register(1, PROTO, kind="PROTOBUF", subject="s")
        access = RegistryAccess(url=server.url)
        pinned = pin_schema(
            ValueSpec(format="protobuf", registry=access, subject="s", message="Last")
        )
        request_count = len(server.requests)
        row = decoded(pinned, FRAME + b"\x02\x02\x0a\x01x").table.to_pylist()
        assert row == [{"b": "x"}]
        assert len(server.requests) == request_count


def test_descriptors_need_no_compiler_and_no_registry():
    spec = ValueSpec(format="protobuf", descriptors=compile_source(PROTO), registry=UNREACHABLE)
    assert decoded(spec, FRAME + b"\0\x08\x01").table.to_pylist() == [{"a": 1}]


def test_a_subject_of_another_type_is_a_config_error():
    with serving() as server:
        server.register(1, PROTO, kind="PROTOBUF", subject="s")
        access = RegistryAccess(url=server.url)
        with pytest.raises(ConfigError, match="subject s: expected an AVRO schema, not PROTOBUF"):
            create_decoder(ValueSpec(format="avro", registry=access, subject="s"))


def test_decoder_continues_with_the_schema_of_a_table():
    schema = pa.schema([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])
    decoder = create_decoder(ValueSpec(format="json", schema=ddl.render(schema), grows=True))
    assert decoder.schema == schema
