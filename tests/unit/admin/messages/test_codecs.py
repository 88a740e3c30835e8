"""Schemas of a registry that is served over HTTP."""

import json

import pytest

from kafscale.admin.messages.codecs import UNKNOWN_IDS_MAX, RegistryCodecs, SchemaCodecs
from kafscale.admin.messages.produce import PayloadInput, encode_input
from kafscale.admin.messages.query import DisplayFormat, SchemaText
from kafscale.admin.messages.renderer import PayloadRenderer
from kafscale.errors import InvalidRequestError
from kafscale.serde.registry import wire_format
from kafscale.serde.registry.client import Registry, RegistryAccess
from services.schema_registry import serving

POINT = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}
PROTO = 'syntax = "proto3"; message A { int32 a = 1; } message B { int32 b = 1; }'


@pytest.fixture
def server():
    with serving() as registry:
        registry.register(1, json.dumps(POINT), subject="t-value")
        registry.register(2, PROTO, kind="PROTOBUF", subject="t-key")
        registry.register(3, "{}", kind="JSON")
        registry.register(4, "nonsense")
        registry.register(5, "x", kind="CAPNPROTO")
        yield registry


@pytest.fixture
def registry(server):
    return RegistryCodecs(Registry(RegistryAccess(url=server.url), sleep=[].append, attempts_max=2))


def render(codecs, payload, format_name="auto"):
    return PayloadRenderer(DisplayFormat(format=format_name), codecs).render(payload)


def test_payload_is_decoded_by_the_schema_in_its_frame(registry):
    codecs = SchemaCodecs(registry)
    assert json.loads(render(codecs, wire_format.join(1, b"\x0e")).text) == {"x": 7}
    second = wire_format.join(2, wire_format.join_indexes((1,), b"\x08\x05"))
    assert json.loads(render(codecs, second).text) == {"b": 5}
    assert render(codecs, wire_format.join(3, b'{"plain":1}')).format == "json"


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (wire_format.join(1, b"\x0e\x0e"), "1 bytes are left"),
        (wire_format.join(2, b"\x02\x08"), "no message at"),
        (wire_format.join(3, b"{"), "not valid JSON"),
        (wire_format.join(4, b"x"), "schema 4: invalid Avro schema"),
        (wire_format.join(5, b"x"), "unsupported schema type CAPNPROTO"),
        (wire_format.join(99, b"x"), None),
        (b"\0\0\0\0\1", None),
    ],
)
def test_undecodable_payload_has_a_problem_unless_the_schema_is_unknown(registry, payload, problem):
    shown = render(SchemaCodecs(registry), payload)
    assert shown.format == "hex"
    assert (shown.problem is None) if problem is None else (problem in shown.problem)


def test_schema_is_fetched_once_and_an_unknown_one_once_per_query(registry, server):
    for _ in range(3):
        codecs = SchemaCodecs(registry)
        for _ in range(3):
            render(codecs, wire_format.join(1, b"\x0e"))
            render(codecs, wire_format.join(99, b"\x0e"))
    assert server.requests == ["/schemas/ids/1", *["/schemas/ids/99"] * 3]


def test_unknown_schema_ids_are_limited(registry, server):
    codecs = SchemaCodecs(registry)
    for number in range(100, 200):
        render(codecs, wire_format.join(number, b"x"))
    assert len(server.requests) == UNKNOWN_IDS_MAX
    assert "too many" in render(codecs, wire_format.join(1, b"\x0e"), "avro").problem
    assert render(codecs.for_other_payloads(), wire_format.join(1, b"\x0e"), "avro").problem is None


def test_registry_failure_is_reported(registry, server):
    server.failures = [401]
    assert "HTTP status 401" in render(SchemaCodecs(registry), wire_format.join(1, b"\x0e")).problem


def test_value_is_encoded_with_the_latest_schema_of_its_subject(registry):
    codecs = SchemaCodecs(registry)
    point = PayloadInput(text='{"x": 7}', format="avro")
    assert encode_input(point, codecs, "t-value") == wire_format.join(1, b"\x0e")
    second = SchemaText(kind="protobuf", message="B")
    order = PayloadInput(text='{"b": 5}', format="protobuf", schema=second)
    expected = wire_format.join(2, wire_format.join_indexes((1,), b"\x08\x05"))
    assert encode_input(order, codecs, "t-key") == expected
    with pytest.raises(InvalidRequestError, match="type protobuf, not avro"):
        encode_input(point, codecs, "t-key")
    with pytest.raises(InvalidRequestError, match="no field y"):
        encode_input(PayloadInput(text='{"y": 7}', format="avro"), codecs, "t-value")
    with pytest.raises(InvalidRequestError, match="no subject none-value; give a schema"):
        encode_input(point, codecs, "none-value")
