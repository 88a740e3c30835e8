"""Rendering payloads, and encoding entered ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.admin.messages.codecs import SchemaCodecs
from kafscale.admin.messages.produce import PayloadInput, encode_input
from kafscale.admin.messages.query import DisplayFormat, SchemaText
from kafscale.admin.messages.renderer import PayloadRenderer
from kafscale.errors import InvalidRequestError

POINT = SchemaText(
    kind="avro", text='{"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}'
)


def render(payload, format_name="auto", schema=None, characters_max=100):
    return PayloadRenderer(
        DisplayFormat(format=format_name, schema=schema), SchemaCodecs(), characters_max
    ).render(payload)


@pytest.mark.parametrize(
    ("payload", "format_name", "text"),
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
def test_auto_detects_the_format(payload, format_name, text):
    shown = render(payload)
    assert (shown.format, shown.text) == (format_name, text)
    assert (shown.size_bytes, shown.is_truncated, shown.problem) == (len(payload), False, None)


@given(st.binary(max_size=300), st.sampled_from(["auto", "text", "json", "hex", "base64"]))
def test_every_payload_is_rendered_within_its_limit(payload, format_name):
    shown = render(payload, format_name)
    assert len(shown.text) <= 100
    assert shown.size_bytes == len(payload)
    if format_name in {"hex", "base64"}:
        assert shown.is_truncated == (len(payload) > (50 if format_name == "hex" else 75))


@given(st.binary(max_size=30), st.sampled_from(["hex", "base64"]))
def test_rendered_text_can_be_entered_again(payload, format_name):
    shown = render(payload, format_name)
    assert (
        encode_input(PayloadInput(text=shown.text, format=format_name), SchemaCodecs(), "s")
        == payload
    )


@given(st.text(max_size=150))
def test_text_is_truncated_between_characters(text):
    try:
        payload = text.encode()
    except UnicodeEncodeError:
        return
    shown = render(payload, "text")
    assert shown.text == text[:100]
    assert shown.is_truncated == (len(text) > 100)


def test_deeply_nested_json_is_text():
    deep = b"[" * 100_000 + b"]" * 100_000
    assert render(deep).format == "text"


def test_large_json_is_not_indented():
    """Indented, it would be gigabytes."""
    payload = b"[" * 300 + b"0," * 300_000 + b"0" + b"]" * 300
    shown = render(payload, characters_max=1000)
    assert (shown.format, shown.text, shown.is_truncated) == ("json", payload[:1000].decode(), True)


def test_value_is_decoded_with_a_schema_or_has_a_problem():
    shown = render(b"\x0e", "avro", POINT)
    assert (shown.format, json.loads(shown.text), shown.problem) == ("avro", {"x": 7}, None)
    framed = render(b"\0\0\0\0\x05\x0e", "avro", POINT)
    assert (json.loads(framed.text), framed.schema_id) == ({"x": 7}, 5)
    bad = render(b"\x0e\x0e", "avro", POINT)
    assert (bad.format, bad.text, bad.problem) == (
        "hex",
        "0e0e",
        "1 bytes are left after the value",
    )
    assert (
        encode_input(
            PayloadInput(text='{"x": 7}', format="avro", schema=POINT), SchemaCodecs(), "s"
        )
        == b"\x0e"
    )


def test_too_large_payload_is_not_decoded():
    shown = render(b"\x02" * (5 << 20), "avro", POINT)
    assert shown.format == "hex"
    assert "too many" in shown.problem


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (SchemaText(kind="protobuf", text="x"), "cannot be used for avro"),
        (SchemaText(kind="avro", text="x" * 300_000), "characters"),
        (SchemaText(kind="avro", text="{"), "invalid Avro schema"),
        (None, "KAFSCALE_SCHEMA_REGISTRY_URL"),
    ],
)
def test_invalid_schema_is_rejected_first(schema, reason):
    with pytest.raises(InvalidRequestError, match=reason):
        PayloadRenderer(DisplayFormat(format="avro", schema=schema), SchemaCodecs()).prepare()


@pytest.mark.parametrize(
    ("format_name", "text"),
    [("json", "{"), ("hex", "0"), ("base64", "a"), ("avro", "{"), ("avro", "{}")],
)
def test_invalid_input_is_rejected(format_name, text):
    schema = POINT if format_name == "avro" else None
    with pytest.raises(InvalidRequestError):
        encode_input(
            PayloadInput(text=text, format=format_name, schema=schema), SchemaCodecs(), "s"
        )
