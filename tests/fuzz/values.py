"""Targets of values of records: the registry's wire format, Avro, Protobuf, and their schemas;
and metrics that clients push."""

import functools
from collections.abc import Iterator
from contextlib import suppress

from fuzz.target import Target
from kafscale.broker._generated import metrics_pb2 as messages
from kafscale.broker.telemetry import payload
from kafscale.errors import ConfigError, InvalidRecordError, TelemetryTooLargeError
from kafscale.records.compression import Codec, compress
from kafscale.serde.avro import reader, writer
from kafscale.serde.avro import schema as avro_schema
from kafscale.serde.protobuf.descriptors import ProtobufFiles
from kafscale.serde.protobuf.json import MessageJson
from kafscale.serde.registry import wire_format
from kafscale.serde.registry.protobuf_compiler import compile_source

AVRO = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"},
  {"name": "name", "type": ["null", "string"]},
  {"name": "raw", "type": "bytes"},
  {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "day", "type": {"type": "int", "logicalType": "date"}},
  {"name": "ratio", "type": "double"},
  {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}},
  {"name": "counts", "type": {"type": "map", "values": "int"}},
  {"name": "parents", "type": {"type": "array", "items": "Order"}}
]}"""
ORDER = {
    "id": 7,
    "name": "tea",
    "raw": "\\u00ff",
    "price": "1",
    "at": "2024-01-01T00:00:00Z",
    "day": "2024-01-01",
    "ratio": 0.5,
    "colour": "BLUE",
    "counts": {"a": 1},
    "parents": [],
}
PROTOBUF = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  int64 order_id = 1;
  string name = 2;
  repeated Item items = 3;
  map<string, int32> counts = 4;
  google.protobuf.Timestamp at = 5;
  optional Order parent = 6;
  repeated sint32 numbers = 7;
  message Item { string sku = 1; double price = 2; }
}
"""
SCHEMA = avro_schema.parse(AVRO)


def split(data: bytes) -> None:
    """Joined again, the parts are the value."""
    schema_id, payload = wire_format.split(data)
    assert wire_format.join(schema_id, payload) == data
    indexes, rest = wire_format.split_indexes(payload)
    if min(indexes) >= 0:
        joined = wire_format.join_indexes(indexes, rest)
        assert wire_format.split_indexes(joined) == (indexes, rest)


def value_seeds() -> Iterator[bytes]:
    for indexes in ((0,), (1, 0), (300, 2)):
        yield wire_format.join(258, wire_format.join_indexes(indexes, b"payload"))


def read_avro(data: bytes) -> None:
    """A value that was read can be written, and is then read as the same."""
    value = reader.read(SCHEMA, data)
    assert reader.read(SCHEMA, writer.write(SCHEMA, value)) == value


@functools.cache
def _descriptors() -> bytes:
    return compile_source(PROTOBUF)


@functools.cache
def _order() -> MessageJson:
    return MessageJson(ProtobufFiles.from_descriptor_set(_descriptors()).message("shop.Order"))


def read_protobuf(data: bytes) -> None:
    _order().read(data)


def protobuf_seeds() -> Iterator[bytes]:
    items = [{"sku": "tea", "price": 1.5}, {}]
    order = {"order_id": 7, "name": "n", "items": items, "counts": {"a": 1}, "numbers": [-1, 5]}
    yield _order().write(order | {"at": "2024-01-01T00:00:00Z", "parent": {"name": "p"}})


def read_descriptors(data: bytes) -> None:
    files = ProtobufFiles.from_descriptor_set(data)
    MessageJson(files.message("")).read(b"\x08\x01")


def parse_avro(data: bytes) -> None:
    schema = avro_schema.parse(data.decode(errors="replace"))
    with suppress(InvalidRecordError):
        reader.read(schema, bytes(16))


def read_telemetry(data: bytes) -> None:
    """The first byte chooses the codec."""
    payload.read(data[0] % 5 if data else 0, data[1:])


def telemetry_seeds() -> Iterator[bytes]:
    points = messages.Sum(
        data_points=[messages.NumberDataPoint(as_int=3), messages.NumberDataPoint(as_double=0.5)],
        aggregation_temporality=1,
        is_monotonic=True,
    )
    metric = messages.Metric(name="org.apache.kafka.producer.connection.creation.total", sum=points)
    scope = messages.ScopeMetrics(metrics=[metric])
    pushed = messages.MetricsData(
        resource_metrics=[messages.ResourceMetrics(scope_metrics=[scope])]
    ).SerializeToString()
    for codec in Codec:
        yield bytes([codec]) + compress(codec, pushed)


REFUSED = (InvalidRecordError,)
TARGETS = (
    Target("client metrics", read_telemetry, telemetry_seeds, (*REFUSED, TelemetryTooLargeError)),
    Target("registry values", split, value_seeds, REFUSED),
    Target("Avro values", read_avro, lambda: [writer.write(SCHEMA, ORDER)], REFUSED),
    Target("Avro schemas", parse_avro, lambda: [AVRO.encode()], (ConfigError,)),
    Target("Protobuf values", read_protobuf, protobuf_seeds, REFUSED),
    Target(
        "Protobuf descriptors", read_descriptors, lambda: [_descriptors()], (*REFUSED, ConfigError)
    ),
)
