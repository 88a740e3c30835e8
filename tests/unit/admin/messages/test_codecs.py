"""Schemas of a real HTTP registry, as a question uses them."""

import json

import pytest

from kafscale.admin.messages.codecs import UNKNOWN_IDS_MAX, Codecs, RegistryCodecs
from kafscale.admin.messages.input_parser import Typed, bytes_of
from kafscale.admin.messages.query import Reading, SchemaText
from kafscale.admin.messages.renderer import Lens
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
def known(server):
    return RegistryCodecs(Registry(RegistryAccess(url=server.url), sleep=[].append, attempts_max=2))


def show(codecs, payload, form="auto"):
    return Lens(Reading(format=form), codecs).show(payload)


def test_a_payload_is_shown_by_the_schema_that_it_names(known):
    codecs = Codecs(known)
    assert json.loads(show(codecs, wire_format.join(1, b"\x0e")).text) == {"x": 7}
    second = wire_format.join(2, wire_format.join_indexes((1,), b"\x08\x05"))
    assert json.loads(show(codecs, second).text) == {"b": 5}
    assert show(codecs, wire_format.join(3, b'{"plain":1}')).format == "json"


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (wire_format.join(1, b"\x0e\x0e"), "1 bytes are left"),
        (wire_format.join(2, b"\x02\x08"), "no message at"),
        (wire_format.join(3, b"{"), "no JSON"),
        (wire_format.join(4, b"x"), "schema 4: the schema is not one of Avro"),
        (wire_format.join(5, b"x"), "CAPNPROTO, which nobody here reads"),
        (wire_format.join(99, b"x"), None),
        (b"\0\0\0\0\1", None),
    ],
)
def test_what_cannot_be_read_is_told_but_not_what_only_looks_like_a_name(known, payload, problem):
    shown = show(Codecs(known), payload)
    assert shown.format == "hex"
    assert (shown.problem is None) if problem is None else (problem in shown.problem)


def test_a_schema_is_asked_for_once_by_all_questions_and_an_unknown_one_once_by_each(known, server):
    for _ in range(3):
        codecs = Codecs(known)
        for _ in range(3):
            show(codecs, wire_format.join(1, b"\x0e"))
            show(codecs, wire_format.join(99, b"\x0e"))
    assert server.asked == ["/schemas/ids/1", *["/schemas/ids/99"] * 3]


def test_bytes_that_look_like_many_names_are_not_all_asked_for(known, server):
    codecs = Codecs(known)
    for number in range(100, 200):
        show(codecs, wire_format.join(number, b"x"))
    assert len(server.asked) == UNKNOWN_IDS_MAX
    assert "too many" in show(codecs, wire_format.join(1, b"\x0e"), "avro").problem
    assert show(codecs.apart(), wire_format.join(1, b"\x0e"), "avro").problem is None


def test_a_registry_that_refuses_us_is_told(known, server):
    server.failures = [401]
    assert "answers 401" in show(Codecs(known), wire_format.join(1, b"\x0e")).problem


def test_a_value_is_written_in_the_newest_schema_of_its_subject(known):
    codecs = Codecs(known)
    point = Typed(text='{"x": 7}', format="avro")
    assert bytes_of(point, codecs, "t-value") == wire_format.join(1, b"\x0e")
    second = SchemaText(kind="protobuf", message="B")
    order = Typed(text='{"b": 5}', format="protobuf", schema=second)
    expected = wire_format.join(2, wire_format.join_indexes((1,), b"\x08\x05"))
    assert bytes_of(order, codecs, "t-key") == expected
    with pytest.raises(InvalidRequestError, match="is of protobuf, not avro"):
        bytes_of(point, codecs, "t-key")
    with pytest.raises(InvalidRequestError, match="no field y"):
        bytes_of(Typed(text='{"y": 7}', format="avro"), codecs, "t-value")
    with pytest.raises(InvalidRequestError, match="no subject none-value: give the schema"):
        bytes_of(point, codecs, "none-value")
