"""What is printed of bytes can be read back to the same bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.cli.commands.consume import record_text
from kafscale.cli.options import Format
from kafscale.records import Header


@pytest.mark.parametrize("form", [Format.TEXT, Format.HEX, Format.BASE64])
@given(value=st.binary())
def test_a_field_reads_back_equal(form, value):
    assert record_text.decode(form, record_text.ENCODERS[form](value)) == value


@given(st.none() | st.binary() | st.text().map(str.encode))
def test_a_value_in_json_reads_back_equal(value):
    printed = json.dumps(record_text.to_json(value))
    assert record_text.from_json(json.loads(printed)) == value


@given(st.lists(st.builds(Header, st.text(), st.none() | st.binary())).map(tuple))
def test_headers_in_json_read_back_equal(headers):
    printed = json.dumps(record_text.headers_to_json(headers))
    assert record_text.headers_from_json(json.loads(printed)) == headers


def test_escapes():
    assert record_text.unescape(r"a\tb\n\0\\t\x") == "a\tb\n\0\\t\\x"
