"""Tests of the conversion of Protobuf to and from JSON."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import ConfigError, InvalidRecordError
from kafscale.serde.protobuf.descriptors import ProtobufFiles
from kafscale.serde.protobuf.json import VALUES_MAX, MessageJson
from kafscale.serde.registry.protobuf_compiler import compile_source

SOURCE = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/any.proto";
message Order {
  int64 order_id = 1;
  string name = 2;
  bytes raw = 3;
  repeated Item items = 4;
  map<string, int32> counts = 5;
  google.protobuf.Timestamp at = 6;
  optional Order parent = 7;
  repeated sint32 numbers = 8;
  google.protobuf.Any anything = 9;
  enum Colour { RED = 0; BLUE = 1; }
  Colour colour = 10;
  message Item { string sku = 1; double price = 2; }
}
"""


@pytest.fixture(scope="module")
def order():
    return MessageJson(
        ProtobufFiles.from_descriptor_set(compile_source(SOURCE)).message("shop.Order")
    )


INT64, WORD = st.integers(-(2**63), 2**63 - 1), st.text(max_size=8)
ITEM = st.fixed_dictionaries(
    {}, optional={"sku": WORD.filter(bool), "price": st.floats(0.5, 1e9, allow_nan=False)}
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "order_id": INT64.filter(bool).map(str),
        "name": WORD.filter(bool),
        "items": st.lists(ITEM, min_size=1, max_size=3),
        "counts": st.dictionaries(WORD, st.integers(0, 9), min_size=1, max_size=3),
        "numbers": st.lists(st.integers(-9, 9), min_size=1, max_size=3),
        "colour": st.just("BLUE"),
        "at": st.just("2024-02-29T12:34:56.789Z"),
        "parent": st.just({}),
    },
)


@given(MESSAGE)
def test_round_trip(order, value):
    payload = order.write(value)
    data = order.read(payload)
    assert data == value
    assert order.write(json.loads(json.dumps(data))) == payload


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_rejected(order, junk):
    with suppress(InvalidRecordError):
        json.dumps(order.read(junk))


def test_unknown_fields_are_ignored_in_bytes_and_rejected_in_json(order):
    assert order.read(bytes([0xA0, 0x06, 1])) == {}
    with pytest.raises(InvalidRecordError, match="hue"):
        order.write({"hue": 1})
    with pytest.raises(InvalidRecordError, match="does not match the message"):
        order.write([1])


def test_any_of_an_unknown_type_is_rejected(order):
    inner = b"\x0a\x09a.b/c.Any"
    with pytest.raises(InvalidRecordError, match="cannot be converted to JSON"):
        order.read(bytes([9 << 3 | 2, len(inner)]) + inner)


@pytest.mark.parametrize(
    "payload",
    [
        bytes([4 << 3 | 2, 0]) * (VALUES_MAX + 1),
        bytes([8 << 3 | 2, 0xC0, 0x9A, 0x0C]) + b"\2" * 200_000,
    ],
    ids=["messages", "numbers"],
)
def test_messages_with_too_many_values_are_rejected(order, payload):
    with pytest.raises(InvalidRecordError, match="more than"):
        order.read(payload)


def test_deeply_nested_messages_are_rejected(order):
    payload = b""
    for _ in range(200):
        size = len(payload)
        header = (
            bytes([7 << 3 | 2, size])
            if size < 128
            else bytes([7 << 3 | 2, size & 0x7F | 0x80, size >> 7])
        )
        payload = header + payload
    with pytest.raises(InvalidRecordError, match="does not match the message"):
        order.read(payload)


def test_message_indexes():
    source = 'syntax = "proto3"; package p; message A { message B {} message C {} } message D {}'
    files = ProtobufFiles.from_descriptor_set(compile_source(source))
    for name, indexes in {"p.A": (0,), "p.A.C": (0, 1), "p.D": (1,)}.items():
        assert files.indexes_of(files.message(name)) == indexes
        assert files.message_at(indexes).full_name == name
    imported = 'syntax = "proto3"; package q; message E {}'
    both = compile_source(
        'syntax = "proto3"; import "q.proto"; message F { q.E e = 1; }', {"q.proto": imported}
    )
    files = ProtobufFiles.from_descriptor_set(both)
    with pytest.raises(ConfigError, match="not in the main file"):
        files.indexes_of(files.message("q.E"))
