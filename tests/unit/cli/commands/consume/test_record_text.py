"""Text formats of keys, values and headers round-trip."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.cli.commands.consume import record_text
from kafscale.cli.options import Format
from kafscale.records import Header


@pytest.mark.parametrize("form", [Format.TEXT, Format.HEX, Format.BASE64])
@given(value=st.binary())
def test_fields_round_trip(form, value):
    assert record_text.decode(form, record_text.ENCODERS[form](value)) == value


@given(st.none() | st.binary() | st.text().map(str.encode))
def test_json_values_round_trip(value):
    printed = json.dumps(record_text.to_json(value))
    assert record_text.from_json(json.loads(printed)) == value


@given(st.lists(st.builds(Header, st.text(), st.none() | st.binary())).map(tuple))
def test_json_headers_round_trip(headers):
    printed = json.dumps(record_text.headers_to_json(headers))
    assert record_text.headers_from_json(json.loads(printed)) == headers


def test_unescape():
    assert record_text.unescape(r"a\tb\n\0\\t\x") == "a\tb\n\0\\t\\x"
