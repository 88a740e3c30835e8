"""Scans miss no match, and their cost is bounded."""

import json

import cramjam
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from doubles.end_marker import ControlType, build_end_marker
from kafscale.admin.messages.codecs import SchemaCodecs
from kafscale.admin.messages.query import DisplayFormat, FilterSpec
from kafscale.admin.messages.renderer import PayloadRenderer
from kafscale.admin.messages.scan import BATCH_RECORDS_MAX, RecordFilter, ScanRange, scan
from kafscale.records import BatchView, Codec, Header, Record, build
from kafscale.records.batch import COUNT_POSITION, LAST_OFFSET_DELTA_POSITION


def record_filter(keys="auto", values="auto", /, **conditions):
    codecs = SchemaCodecs()
    return RecordFilter(
        FilterSpec(**conditions),
        PayloadRenderer(DisplayFormat(format=keys), codecs),
        PayloadRenderer(DisplayFormat(format=values), codecs),
    )


def batch(*records, codec=Codec.NONE):
    return BatchView(build(records, codec=codec))


def record(offset, value=b"v", key=None, headers=()):
    return Record(offset, 1000 + offset, key, value, tuple(headers))


def offsets(result):
    return [match.record.offset for match in result.matches]


def full_range(limit=100, newest=False):
    return ScanRange(0, 0, 10**9, limit, newest)


WORDS = st.sampled_from(["a", "A", "ab", "é", "É", "x.y", "\\u0061", "1", '"', "K"])
VALUES = st.one_of(
    st.none(),
    WORDS.map(str.encode),
    st.dictionaries(WORDS, WORDS | st.integers(0, 3), max_size=3).map(
        lambda value: json.dumps(value).encode()
    ),
    st.dictionaries(WORDS, st.lists(WORDS, max_size=2), max_size=2).map(
        lambda value: json.dumps(value, ensure_ascii=False).encode()
    ),
    st.binary(max_size=5),
)
RECORDS = st.lists(
    st.tuples(VALUES, VALUES, st.lists(st.tuples(WORDS, VALUES), max_size=2)),
    min_size=1,
    max_size=5,
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "key": WORDS,
        "text": WORDS,
        "json_path": st.sampled_from(["a", "A", "é", "ab", '["x.y"]', "a[0]", "K.1"]),
        "json_equals": WORDS,
        "header": WORDS,
    },
)


@example([(None, b'{"l":["x"]}', [])], {"json_path": "l[0]"}, "auto", Codec.NONE)
@example([(None, b'{"\\u006c":1}', [])], {"json_path": "l"}, "auto", Codec.NONE)
@example(
    [(None, b'{"l":"\\u006c"}', [])], {"json_path": "l", "json_equals": "l"}, "auto", Codec.NONE
)
@example([(None, b'{"l":1e1}', [])], {"json_path": "l", "json_equals": "10"}, "auto", Codec.NONE)
@given(RECORDS, FILTERS, st.sampled_from(["auto", "text", "hex", "json"]), st.sampled_from(Codec))
def test_skipped_batch_has_no_match(records, conditions, format_name, codec):
    matched = [
        record(offset, value, key, [Header(name, content) for name, content in headers])
        for offset, (key, value, headers) in enumerate(records)
    ]
    filtering = record_filter(format_name, format_name, **conditions)
    is_match = [each.offset for each in matched if filtering.matches(each)]
    assert offsets(scan([batch(*matched, codec=codec)], filtering, full_range())) == is_match


@pytest.mark.parametrize(
    ("conditions", "is_match"),
    [
        ({"key": "Key"}, True),
        ({"key": "key"}, False),
        ({"text": "KEY"}, True),
        ({"text": "CAFÉ"}, True),
        ({"text": "NAME"}, True),
        ({"text": "held"}, True),
        ({"text": "nowhere"}, False),
        ({"header": "name"}, True),
        ({"header": "nam"}, False),
        ({"json_path": "drink"}, True),
        ({"json_path": "drink", "json_equals": "café"}, True),
        ({"json_path": "drink", "json_equals": "tea"}, False),
        ({"json_path": "food"}, False),
        ({"json_path": "drink", "key": "other"}, False),
    ],
)
def test_all_conditions_must_hold(conditions, is_match):
    value = '{"drink": "café"}'.encode()
    matched = record(0, value, b"Key", [Header("name", b"held")])
    assert record_filter(**conditions).matches(matched) is is_match


def test_text_is_searched_in_rendered_payloads():
    assert record_filter("auto", "hex", text="7630").matches(record(0, b"v0"))
    assert not record_filter(text="7630").matches(record(0, b"v0"))
    assert record_filter("hex", text="6b").matches(record(0, None, b"k"))
    assert record_filter("hex", key="6b").matches(record(0, None, b"k"))


def test_first_or_last_matches_are_kept():
    batches = [batch(*(record(n) for n in range(base, base + 5))) for base in (0, 5, 10)]
    first = scan(batches, record_filter(), ScanRange(0, 2, 14, 3, newest=False))
    assert (offsets(first), first.is_truncated) == ([2, 3, 4], True)
    last = scan(batches, record_filter(), ScanRange(0, 2, 14, 3, newest=True))
    assert (offsets(last), last.is_truncated) == ([11, 12, 13], True)
    every = scan(batches, record_filter(), ScanRange(0, 2, 14, 12, newest=True))
    assert (offsets(every), every.is_truncated) == (list(range(2, 14)), False)


def test_control_batches_are_skipped():
    marker = build_end_marker(
        ControlType.COMMIT, offset=1, timestamp_ms=1, producer_id=1, producer_epoch=0
    )
    result = scan(
        [batch(record(0)), BatchView(marker), batch(record(2))], record_filter(), full_range()
    )
    assert offsets(result) == [0, 2]
    assert result.problems == []


def test_damaged_batch_does_not_affect_others():
    broken = bytearray(build([record(1)], codec=Codec.ZSTD))
    broken[-4:] = b"\xff\xff\xff\xff"
    result = scan(
        [batch(record(0)), BatchView(broken), batch(record(2))], record_filter(), full_range()
    )
    assert offsets(result) == [0, 2]
    assert len(result.problems) == 1
    assert "partition 0, offsets 1 to 1 cannot be read" in result.problems[0]


@pytest.mark.timeout(10)
@pytest.mark.parametrize("conditions", [{}, {"text": "needle"}])
def test_decompression_bomb_is_reported_and_skipped(conditions):
    bomb = bytearray(build([record(1)], codec=Codec.ZSTD)[:61])
    bomb += bytes(cramjam.zstd.compress(bytes(100 << 20)))
    bomb[8:12] = (len(bomb) - 12).to_bytes(4, "big")
    result = scan(
        [BatchView(bomb), batch(record(2, b"needle"))], record_filter(**conditions), full_range()
    )
    assert offsets(result) == [2]
    assert "more than" in result.problems[0]


def test_batch_with_too_many_records_is_reported():
    claim = bytearray(build([record(0)]))
    count = BATCH_RECORDS_MAX + 1
    claim[COUNT_POSITION : COUNT_POSITION + 4] = count.to_bytes(4, "big")
    claim[LAST_OFFSET_DELTA_POSITION : LAST_OFFSET_DELTA_POSITION + 4] = count.to_bytes(4, "big")
    result = scan([BatchView(claim)], record_filter(), full_range())
    assert offsets(result) == []
    assert "too many to scan" in result.problems[0]
