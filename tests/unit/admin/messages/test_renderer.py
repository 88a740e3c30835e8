"""Bytes made readable, and what was typed made bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.admin.messages.codecs import Codecs
from kafscale.admin.messages.input_parser import Typed, bytes_of
from kafscale.admin.messages.query import Reading, SchemaText
from kafscale.admin.messages.renderer import Lens
from kafscale.errors import InvalidRequestError

POINT = SchemaText(
    kind="avro", text='{"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}'
)


def show(payload, form="auto", schema=None, characters_max=100):
    return Lens(Reading(format=form, schema=schema), Codecs(), characters_max).show(payload)


@pytest.mark.parametrize(
    ("payload", "form", "text"),
    [
        (b"", "text", ""),
        (b"plain", "text", "plain"),
        (b"42", "text", "42"),
        (b'"quoted"', "text", '"quoted"'),
        (b"two\nlines\t", "text", "two\nlines\t"),
        ("ü".encode(), "text", "ü"),
        (b' {"a":1}', "json", '{\n  "a": 1\n}'),
        (b"[1,2", "text", "[1,2"),
        (b"[12345678901234567890123]", "json", "[\n  12345678901234567890123\n]"),
        (b'{"a":"\xff"}', "hex", b'{"a":"\xff"}'.hex()),
        (b"\x00abc", "hex", "00616263"),
        (b"\x1b[31m", "hex", "1b5b33316d"),
        (b"\xff", "hex", "ff"),
    ],
)
def test_bytes_are_taken_for_what_they_seem_to_be(payload, form, text):
    shown = show(payload)
    assert (shown.format, shown.text) == (form, text)
    assert (shown.size_bytes, shown.is_truncated, shown.problem) == (len(payload), False, None)


@given(st.binary(max_size=300), st.sampled_from(["auto", "text", "json", "hex", "base64"]))
def test_every_payload_is_shown_within_its_bound(payload, form):
    shown = show(payload, form)
    assert len(shown.text) <= 100
    assert shown.size_bytes == len(payload)
    if form in {"hex", "base64"}:
        assert shown.is_truncated == (len(payload) > (50 if form == "hex" else 75))


@given(st.binary(max_size=30), st.sampled_from(["hex", "base64"]))
def test_what_is_shown_can_be_typed_again(payload, form):
    shown = show(payload, form)
    assert bytes_of(Typed(text=shown.text, format=form), Codecs(), "s") == payload


@given(st.text(max_size=150))
def test_text_is_cut_between_characters(text):
    try:
        payload = text.encode()
    except UnicodeEncodeError:
        return
    shown = show(payload, "text")
    assert shown.text == text[:100]
    assert shown.is_truncated == (len(text) > 100)


def test_a_document_with_a_hundred_thousand_levels_is_text():
    deep = b"[" * 100_000 + b"]" * 100_000
    assert show(deep).format == "text"


def test_a_large_document_is_shown_as_it_came():
    """Indented, it would be gigabytes."""
    payload = b"[" * 300 + b"0," * 300_000 + b"0" + b"]" * 300
    shown = show(payload, characters_max=1000)
    assert (shown.format, shown.text, shown.is_truncated) == ("json", payload[:1000].decode(), True)


def test_a_value_is_read_with_a_schema_or_else_told_why_not():
    shown = show(b"\x0e", "avro", POINT)
    assert (shown.format, json.loads(shown.text), shown.problem) == ("avro", {"x": 7}, None)
    framed = show(b"\0\0\0\0\x05\x0e", "avro", POINT)
    assert (json.loads(framed.text), framed.schema_id) == ({"x": 7}, 5)
    bad = show(b"\x0e\x0e", "avro", POINT)
    assert (bad.format, bad.text, bad.problem) == (
        "hex",
        "0e0e",
        "1 bytes are left when the schema is read",
    )
    assert bytes_of(Typed(text='{"x": 7}', format="avro", schema=POINT), Codecs(), "s") == b"\x0e"


def test_more_bytes_than_a_schema_is_tried_on_are_shown_as_they_are():
    shown = show(b"\x02" * (5 << 20), "avro", POINT)
    assert shown.format == "hex"
    assert "too many" in shown.problem


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (SchemaText(kind="protobuf", text="x"), "cannot be used for avro"),
        (SchemaText(kind="avro", text="x" * 300_000), "characters"),
        (SchemaText(kind="avro", text="{"), "not one of Avro"),
        (None, "KAFSCALE_SCHEMA_REGISTRY_URL"),
    ],
)
def test_a_schema_that_is_none_is_refused_before_anything_is_read(schema, reason):
    with pytest.raises(InvalidRequestError, match=reason):
        Lens(Reading(format="avro", schema=schema), Codecs()).prepare()


@pytest.mark.parametrize(
    ("form", "text"), [("json", "{"), ("hex", "0"), ("base64", "a"), ("avro", "{"), ("avro", "{}")]
)
def test_what_is_typed_wrongly_is_refused(form, text):
    schema = POINT if form == "avro" else None
    with pytest.raises(InvalidRequestError):
        bytes_of(Typed(text=text, format=form, schema=schema), Codecs(), "s")
