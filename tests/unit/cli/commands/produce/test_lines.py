"""Lines of input become records, or an error that names the line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.cli.commands.produce.lines import LineCutter, LineParser
from kafscale.cli.options import Format
from kafscale.client.producer.sender import LineError, Outgoing
from kafscale.records import Header


def test_a_line_of_text_is_a_value_as_it_is():
    assert LineParser().parse(7, b"\xffany bytes\r") == Outgoing(
        7, None, b"\xffany bytes\r", (), None, None
    )


def test_the_options_hold_for_every_line():
    parser = LineParser(key=b"k", headers=(Header("h", b"1"),), partition=3)
    assert parser.parse(1, b"") == Outgoing(1, b"k", b"", (Header("h", b"1"),), None, 3)


def test_a_separator_ends_the_key():
    parser = LineParser(key_separator=b"::")
    assert parser.parse(1, b"k::v::w")[1:3] == (b"k", b"v::w")
    assert parser.parse(1, b"::v")[1:3] == (b"", b"v")
    with pytest.raises(LineError, match="line 2: there is no key: the separator '::' is missing"):
        parser.parse(2, b"value alone")


@pytest.mark.parametrize(
    ("form", "line"), [(Format.HEX, b"6b:00FF"), (Format.BASE64, b"aw==:AP8=")]
)
def test_bytes_can_be_written_as_text(form, line):
    assert LineParser(form, key_separator=b":").parse(1, line)[1:3] == (b"k", b"\x00\xff")
    with pytest.raises(LineError, match=f"line 9: 'no!' is not {form}"):
        LineParser(form).parse(9, b"no!")


def test_a_line_of_json_says_everything():
    line = {
        "key": "k",
        "value": {"base64": "AP8="},
        "headers": [{"key": "h", "value": None}, {"key": "h", "value": "2"}],
        "timestamp": "2023-11-14T22:13:20.123Z",
        "partition": 2,
        "offset": 4711,
        "topic": "elsewhere",
    }
    assert LineParser(Format.JSON).parse(1, json.dumps(line).encode()) == Outgoing(
        1, b"k", b"\x00\xff", (Header("h", None), Header("h", b"2")), 1_700_000_000_123, 2
    )


def test_json_inside_json_is_kept_as_json():
    parsed = LineParser(Format.JSON).parse(1, b'{"value": {"a": [1, "\xc3\xa4"]}, "timestamp": 5}')
    assert (parsed.value, parsed.timestamp_ms) == ('{"a":[1,"ä"]}'.encode(), 5)


def test_what_a_line_of_json_leaves_out_the_options_say():
    parser = LineParser(Format.JSON, key=b"k", headers=(Header("a", b"1"),), partition=1)
    assert parser.parse(1, b'{"headers": {"b": "2"}}') == Outgoing(
        1, b"k", None, (Header("a", b"1"), Header("b", b"2")), None, 1
    )
    assert parser.parse(1, b'{"key": null}').key is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "is not an object"),
        (b'{"vlaue": 1}', "unknown field 'vlaue'"),
        (b'{"timestamp": true}', "timestamp True"),
        (b'{"timestamp": "yesterday"}', "'yesterday' is not a time"),
        (b'{"partition": -1}', "partition -1"),
        (b'{"partition": "1"}', "partition '1'"),
        (b'{"headers": [1]}', "headers are neither"),
        (b'{"value": {"base64": "?"}}', "is not base64"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_with_its_number(line, problem):
    with pytest.raises(LineError, match="line 12: ") as caught:
        LineParser(Format.JSON).parse(12, line)
    assert problem in str(caught.value)


@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"\n")), st.data())
def test_lines_are_the_same_however_they_are_cut(text, data):
    cutter = LineCutter()
    lines = []
    rest = text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        lines += cutter.feed(rest[:size])
        rest = rest[size:]
    lines += cutter.end()
    expected = text.split(b"\n")
    assert lines == (expected if expected[-1] else expected[:-1])
