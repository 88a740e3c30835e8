"""`kafscale produce`: reads standard input in chunks, splits lines and parses records."""

import asyncio
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.cli.commands.produce.input import (
    CHUNKS_COUNT_MAX,
    InputReader,
    LineParser,
    LineSplitter,
)
from kafscale.cli.options import Format
from kafscale.client.producer import LineError, OutgoingRecord
from kafscale.records import Header


def read_all(read):
    async def scenario():
        chunks = InputReader(read)
        received = []
        while chunk := await chunks.next():
            received.append(chunk)
        return received

    return asyncio.run(scenario())


def test_reader_returns_all_chunks_in_order():
    expected = [b"%d" % number for number in range(3 * CHUNKS_COUNT_MAX)]
    pending = iter([*expected, b""])
    assert read_all(lambda: next(pending)) == expected


def test_reader_treats_a_read_error_as_the_end():
    def read():
        raise OSError("closed")

    assert read_all(read) == []


def test_reader_limits_read_ahead():
    full = threading.Event()
    read_count = 0

    def read():
        nonlocal read_count
        read_count += 1
        if read_count == CHUNKS_COUNT_MAX:
            full.set()
        return b"chunk"

    async def scenario():
        chunks = InputReader(read)
        assert await asyncio.to_thread(full.wait, 10)
        for _ in range(100):
            await asyncio.sleep(0)
        assert read_count == CHUNKS_COUNT_MAX
        assert await chunks.next() == b"chunk"
        assert not chunks.is_waiting

    asyncio.run(scenario())


@pytest.mark.parametrize("count", [1, 2])
def test_reader_reports_whether_a_chunk_is_available(count):
    pending = iter([b"x"] * count + [b""])

    async def scenario():
        chunks = InputReader(lambda: next(pending))
        for _ in range(count + 1):
            await chunks.next()
        assert chunks.is_waiting

    asyncio.run(scenario())


def test_parser_keeps_text_lines_unchanged():
    assert LineParser().parse(7, b"\xffany bytes\r") == OutgoingRecord(
        7, None, b"\xffany bytes\r", (), None, None
    )


def test_parser_applies_options_to_every_line():
    parser = LineParser(key=b"k", headers=(Header("h", b"1"),), partition=3)
    assert parser.parse(1, b"") == OutgoingRecord(1, b"k", b"", (Header("h", b"1"),), None, 3)


def test_parser_splits_key_and_value_at_the_separator():
    parser = LineParser(key_separator=b"::")
    assert parser.parse(1, b"k::v::w")[1:3] == (b"k", b"v::w")
    assert parser.parse(1, b"::v")[1:3] == (b"", b"v")
    with pytest.raises(LineError, match="line 2: has no key: the separator '::' is missing"):
        parser.parse(2, b"value alone")


@pytest.mark.parametrize(
    ("form", "line"), [(Format.HEX, b"6b:00FF"), (Format.BASE64, b"aw==:AP8=")]
)
def test_parser_decodes_hex_and_base64(form, line):
    assert LineParser(form, key_separator=b":").parse(1, line)[1:3] == (b"k", b"\x00\xff")
    with pytest.raises(LineError, match=f"line 9: 'no!' is not {form}"):
        LineParser(form).parse(9, b"no!")


def test_parser_reads_all_fields_of_json():
    line = {
        "key": "k",
        "value": {"base64": "AP8="},
        "headers": [{"key": "h", "value": None}, {"key": "h", "value": "2"}],
        "timestamp": "2023-11-14T22:13:20.123Z",
        "partition": 2,
        "offset": 4711,
        "topic": "elsewhere",
    }
    assert LineParser(Format.JSON).parse(1, json.dumps(line).encode()) == OutgoingRecord(
        1, b"k", b"\x00\xff", (Header("h", None), Header("h", b"2")), 1_700_000_000_123, 2
    )


def test_parser_encodes_nested_json_values():
    parsed = LineParser(Format.JSON).parse(1, b'{"value": {"a": [1, "\xc3\xa4"]}, "timestamp": 5}')
    assert (parsed.value, parsed.timestamp_ms) == ('{"a":[1,"ä"]}'.encode(), 5)


def test_options_are_defaults_for_json_lines():
    parser = LineParser(Format.JSON, key=b"k", headers=(Header("a", b"1"),), partition=1)
    assert parser.parse(1, b'{"headers": {"b": "2"}}') == OutgoingRecord(
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
        (b'{"timestamp": true}', "invalid timestamp True"),
        (b'{"timestamp": "yesterday"}', "'yesterday' is not a time"),
        (b'{"partition": -1}', "invalid partition -1"),
        (b'{"partition": "1"}', "invalid partition '1'"),
        (b'{"headers": [1]}', "headers must be an object"),
        (b'{"value": {"base64": "?"}}', "is not base64"),
    ],
)
def test_invalid_lines_are_reported_with_their_number(line, problem):
    with pytest.raises(LineError, match="line 12: ") as caught:
        LineParser(Format.JSON).parse(12, line)
    assert problem in str(caught.value)


@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"\n")), st.data())
def test_splitter_is_independent_of_chunk_boundaries(text, data):
    splitter = LineSplitter()
    lines = []
    rest = text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        lines += splitter.feed(rest[:size])
        rest = rest[size:]
    lines += splitter.end()
    expected = text.split(b"\n")
    assert lines == (expected if expected[-1] else expected[:-1])
