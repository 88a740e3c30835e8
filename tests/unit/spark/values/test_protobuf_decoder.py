"""Tests of the Protobuf decoder with protoc, with and without a registry."""

import base64
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import ConfigError, StoreUnavailableError
from kafscale.serde.protobuf.descriptors import ProtobufFiles
from kafscale.serde.registry.client import Registry, RegistryAccess
from kafscale.serde.registry.protobuf_compiler import compile_source
from kafscale.spark.values.base import TIMESTAMP, list_of
from kafscale.spark.values.protobuf_decoder import ProtobufDecoder, ProtobufRegistryDecoder
from services.schema_registry import serving

SOURCE = """
syntax = "proto3";
package shop;
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

message Order {
  enum Kind { NONE = 0; GIFT = 1; }
  message Line { string product = 1; uint32 count = 2; Order origin = 3; }
  message Nothing {}
  int64 id = 1;
  optional string note = 2;
  repeated Line lines = 3;
  map<string, int32> counts = 4;
  map<int32, Line> places = 5;
  oneof payment { string card = 6; bytes cash = 7; }
  google.protobuf.Timestamp at = 8;
  google.protobuf.Int64Value limit = 9;
  Kind kind = 10;
  repeated Kind kinds = 11;
  uint64 big = 12;
  google.protobuf.Duration took = 13;
  google.protobuf.Struct extra = 14;
  google.protobuf.Any more = 15;
  Nothing nothing = 16;
  bool flag = 17; float ratio = 18; double share = 19; sint32 small = 20; fixed32 fixed = 21;
  repeated google.protobuf.StringValue names = 22;
}
message Other { message Deep { int32 x = 1; } Deep deep = 1; string id = 2; }
"""
OLDER = 'syntax = "proto3"; package shop; message Order { int64 id = 1; string name = 30; }'


@pytest.fixture(scope="module")
def descriptors():
    return compile_source(SOURCE)


@pytest.fixture(scope="module")
def files(descriptors):
    return ProtobufFiles.from_descriptor_set(descriptors)


@pytest.fixture(scope="module")
def order(files):
    return message_factory.GetMessageClass(files.message("shop.Order"))


def binary(*values):
    return pa.array(values, pa.binary())


def encoded(message):
    return message.SerializeToString()


def test_columns_of_a_message(files):
    line = pa.struct([("product", pa.string()), ("count", pa.int64()), ("origin", pa.string())])
    assert ProtobufDecoder(files.message("")).schema == pa.schema(
        [
            ("id", pa.int64()),
            ("note", pa.string()),
            ("lines", list_of(line)),
            ("counts", pa.map_(pa.string(), pa.int32())),
            ("places", pa.map_(pa.int32(), line)),
            ("card", pa.string()),
            ("cash", pa.binary()),
            ("at", TIMESTAMP),
            ("limit", pa.int64()),
            ("kind", pa.string()),
            ("kinds", list_of(pa.string())),
            ("big", pa.decimal128(20, 0)),
            ("took", pa.string()),
            ("extra", pa.string()),
            ("more", pa.struct([("type_url", pa.string()), ("value", pa.binary())])),
            ("nothing", pa.string()),
            ("flag", pa.bool_()),
            ("ratio", pa.float32()),
            ("share", pa.float64()),
            ("small", pa.int32()),
            ("fixed", pa.int64()),
            ("names", list_of(pa.string())),
        ]
    )


def test_set_fields_are_decoded(files, order):
    message = order(
        id=-5,
        note="",
        counts={"k": 1},
        cash=b"\xff",
        kind=1,
        kinds=[0, 1, 7],
        big=2**64 - 1,
        flag=True,
        ratio=0.5,
        share=0.1,
        small=-3,
        fixed=2**32 - 1,
        nothing={},
    )
    message.lines.add(product="p", count=2**32 - 1, origin={"id": 7, "note": "n"})
    message.places[3].product = "q"
    message.at.FromDatetime(datetime(2024, 2, 29, 12, 34, 56, 789, tzinfo=UTC))
    message.limit.value = 0
    message.took.FromMilliseconds(1500)
    message.extra.update({"k": [1, None, {"x": "y"}]})
    message.more.type_url = "x/unknown"
    message.more.value = b"\1"
    message.names.add(value="n")
    decoded = ProtobufDecoder(files.message("shop.Order")).decode(binary(encoded(message)))
    assert decoded.bad == []
    assert decoded.table.to_pylist() == [
        {
            "id": -5,
            "note": "",
            "counts": [("k", 1)],
            "card": None,
            "cash": b"\xff",
            "lines": [{"product": "p", "count": 2**32 - 1, "origin": '{"id":"7","note":"n"}'}],
            "places": [(3, {"product": "q", "count": 0, "origin": None})],
            "at": datetime(2024, 2, 29, 12, 34, 56, 789, tzinfo=UTC),
            "limit": 0,
            "kind": "GIFT",
            "kinds": ["NONE", "GIFT", "7"],
            "big": Decimal(2**64 - 1),
            "took": "1.500s",
            "extra": '{"k":[1.0,null,{"x":"y"}]}',
            "more": {"type_url": "x/unknown", "value": b"\1"},
            "nothing": "{}",
            "flag": True,
            "ratio": 0.5,
            "share": 0.1,
            "small": -3,
            "fixed": 2**32 - 1,
            "names": ["n"],
        }
    ]


def test_unset_fields_with_presence_are_null(files):
    decoded = ProtobufDecoder(files.message("shop.Order")).decode(binary(b"", None))
    empty, tombstone = decoded.table.to_pylist()
    assert {name: value for name, value in empty.items() if value is not None} == {
        "id": 0,
        "lines": [],
        "counts": [],
        "places": [],
        "kind": "NONE",
        "kinds": [],
        "big": 0,
        "flag": False,
        "ratio": 0,
        "share": 0,
        "small": 0,
        "fixed": 0,
        "names": [],
    }
    assert set(tombstone.values()) == {None}


def test_unknown_fields_are_ignored(files, order):
    older = ProtobufFiles.from_descriptor_set(compile_source(OLDER)).message("shop.Order")
    decoded = ProtobufDecoder(older).decode(binary(encoded(order(id=1, note="x"))))
    assert decoded.table.to_pylist() == [{"id": 1, "name": ""}]
    newer = message_factory.GetMessageClass(older)(id=2, name="y")
    decoded = ProtobufDecoder(files.message("shop.Order")).decode(binary(encoded(newer)))
    assert decoded.table.column("id").to_pylist() == [2]


@given(junk=st.binary(max_size=60))
def test_invalid_bytes_do_not_affect_other_records(files, junk):
    decoded = ProtobufDecoder(files.message("shop.Order")).decode(
        binary(b"\x08\x05", junk, b"\x08")
    )
    assert decoded.table.column("id").to_pylist()[0] == 5
    assert decoded.bad[-1].row == 2
    assert decoded.table.num_rows == 3 - len(decoded.bad)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"at": {"seconds": 2**60}}, "timestamp out of range"),
        ({"at": {"nanos": -1}}, "timestamp out of range"),
        ({"took": {"seconds": 2**60}}, "cannot be converted to JSON"),
        (
            {"extra": {"fields": {"x": {"number_value": float("nan")}}}},
            "cannot be converted to JSON",
        ),
    ],
)
def test_values_out_of_range_are_invalid(files, order, fields, reason):
    value = encoded(order(id=1, **fields))
    decoded = ProtobufDecoder(files.message("shop.Order")).decode(binary(value, b""))
    assert decoded.good.to_pylist() == [False, True]
    assert reason in decoded.bad[0].reason


def test_proto2_fields_have_presence():
    source = (
        'syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2 [default = 5]; }'
    )
    decoder = ProtobufDecoder(
        ProtobufFiles.from_descriptor_set(compile_source(source)).message("M")
    )
    assert decoder.decode(binary(b"\x08\x01")).table.to_pylist() == [{"a": 1, "b": None}]


def test_source_with_imports():
    main = 'syntax = "proto3"; import "a/b.proto"; message M { p.N n = 1; }'
    imports = {"a/b.proto": 'syntax = "proto3"; package p; message N { int32 x = 1; }'}
    decoder = ProtobufDecoder(
        ProtobufFiles.from_descriptor_set(compile_source(main, imports)).message("")
    )
    assert decoder.schema == pa.schema([("n", pa.struct([("x", pa.int32())]))])


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (
            lambda: compile_source("syntax nonsense"),
            "cannot compile the Protobuf definitions: kafscale_value.proto:1",
        ),
        (lambda: compile_source("", {"../x.proto": ""}), "invalid name of a Protobuf file"),
        (lambda: compile_source("", {"/x.proto": ""}), "invalid name of a Protobuf file"),
        (
            lambda: compile_source("", {"kafscale_value.proto": ""}),
            "invalid name of a Protobuf file",
        ),
        (lambda: ProtobufFiles.from_descriptor_set(b"\xff"), "not a FileDescriptorSet"),
        (lambda: ProtobufFiles.from_descriptor_set(b""), "no files"),
        (lambda: ProtobufFiles({"a": file("a", "b")}), "a imports b, which is missing"),
        (lambda: ProtobufFiles({"a": file("a", "a")}), "a imports itself"),
    ],
)
def test_invalid_definitions_are_rejected(build, reason):
    with pytest.raises(ConfigError) as caught:
        build()
    assert reason in str(caught.value)


def file(name, *imports):
    return descriptor_pb2.FileDescriptorProto(name=name, dependency=imports)


def test_unknown_and_empty_messages_are_rejected(files):
    with pytest.raises(ConfigError, match=r"no message shop\.Nope"):
        files.message("shop.Nope")
    with pytest.raises(ConfigError, match="has no fields"):
        ProtobufDecoder(files.message("shop.Order.Nothing"))


# --- with a registry ------------------------------------------------------------------------------


def frame(schema_id, indexes, payload):
    return b"\0" + schema_id.to_bytes(4, "big") + indexes + payload


def serialized(source, imports=None):
    """Return a file in the serialized form of registries, without its name."""
    result = descriptor_pb2.FileDescriptorSet.FromString(compile_source(source, imports)).file[-1]
    result.name = "default"
    return base64.b64encode(result.SerializeToString()).decode()


IMPORTED = 'syntax = "proto3"; package p; message N { int32 x = 1; }'
IMPORTING = 'syntax = "proto3"; import "n.proto"; message M { p.N n = 1; }'
REFERENCES = [{"name": "n.proto", "subject": "n", "version": 4}]


@pytest.fixture(scope="module")
def server():
    with serving() as registry:
        registry.register(1, SOURCE, kind="PROTOBUF")
        registry.register(2, "unused", kind="PROTOBUF", serialized=serialized(SOURCE))
        registry.register(3, '"int"')
        registry.register(4, serialized(IMPORTED), kind="PROTOBUF", subject="n")
        registry.register(
            5, serialized(IMPORTING, {"n.proto": IMPORTED}), kind="PROTOBUF", references=REFERENCES
        )
        registry.register(6, "syntax nonsense", kind="PROTOBUF")
        yield registry


def registry_decoder(server):
    return ProtobufRegistryDecoder(Registry(RegistryAccess(url=server.url), sleep=[].append))


@pytest.mark.parametrize("schema_id", [1, 2])
def test_values_are_decoded_as_the_message_that_they_name(server, schema_id):
    subject = registry_decoder(server)
    assert subject.schema is None
    decoded = subject.decode(binary(frame(schema_id, b"\0", b"\x08\x05"), None))
    assert decoded.table.column("id").to_pylist() == [5, None]
    deep = subject.decode(binary(frame(schema_id, b"\x04\x02\x00", b"\x08\x07")))
    assert deep.table.column("x").to_pylist() == [7]
    conflict = subject.decode(binary(frame(schema_id, b"\x02\x02", b"\x12\x01y")))
    assert conflict.bad[0].reason.startswith("id: ")


def test_registered_schema_with_references(server):
    decoded = registry_decoder(server).decode(binary(frame(5, b"\0", b"\x0a\x02\x08\x09")))
    assert decoded.table.to_pylist() == [{"n": {"x": 9}}]


def test_invalid_frames_and_schemas_do_not_affect_other_records(server):
    decoded = registry_decoder(server).decode(
        binary(
            frame(2, b"\0", b"\x08\x05"),
            frame(3, b"\0", b""),
            frame(6, b"\0", b""),
            frame(99, b"\0", b""),
            frame(2, b"\x02\x10", b""),
            frame(2, b"\x04\x00\x02", b""),
            frame(2, b"\x80", b""),
            frame(2, b"\0", b"\xff"),
            b"plain",
        )
    )
    assert decoded.good.to_pylist() == [True] + [False] * 8
    reasons = [bad.reason for bad in decoded.bad]
    assert reasons[0] == "schema 3: expected a PROTOBUF schema, not AVRO"
    assert reasons[1].startswith("schema 6: cannot compile the Protobuf definitions")
    assert reasons[2] == "schema 99 is not in the registry"
    assert reasons[3] == "there is no message at [8] in the schema"
    assert reasons[4] == "the message shop.Order.Nothing has no fields"
    assert reasons[5] == "the message indexes are truncated"
    assert "corrupt" in reasons[6]
    assert "names no schema" in reasons[7]


def test_a_given_message_needs_no_registry(files):
    decoder = ProtobufDecoder(files.message("shop.Order"), is_framed=True)
    decoded = decoder.decode(binary(frame(12345, b"\0", b"\x08\x05"), b"\x08\x05"))
    assert decoded.good.to_pylist() == [True, False]


def test_an_unavailable_registry_raises(server):
    server.failures = [500] * 10
    try:
        with pytest.raises(StoreUnavailableError):
            registry_decoder(server).decode(binary(frame(1, b"\0", b"")))
    finally:
        server.failures = []
