"""Tests of offset bounds: JSON, resolution and errors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRequestError, OffsetOutOfRangeError, UnknownTopicError
from kafscale.spark.plan.offset_bounds import (
    EARLIEST,
    LATEST,
    GlobalOffset,
    GlobalTimestamp,
    Side,
    SpecificOffsets,
    SpecificTimestamps,
    decode,
    encode,
    is_latest,
    parse,
    resolve,
)
from kafscale.spark.plan.offset_map import PartitionOffsets

PARTITIONS = {
    ("orders", 0): PartitionOffsets("orders", 0, 5, 20),
    ("orders", 1): PartitionOffsets("orders", 1, 0, 0),
}
STARTING = Side("starting", needs_record=True)
LENIENT = Side("starting", needs_record=False, clips=True)


def find_nothing(timestamps_ms):
    return dict.fromkeys(timestamps_ms)


def resolved(bound, side=STARTING, search=find_nothing):
    result = resolve(bound, PARTITIONS, side, search)
    return [result["orders", 0], result["orders", 1]]


offsets = st.dictionaries(
    st.tuples(st.text(min_size=1), st.integers(0, 2**31 - 1)), st.integers(-2, 2**63 - 1)
)


@given(offsets)
def test_json_round_trip(expected):
    document = encode(expected)
    assert decode(json.loads(json.dumps(document))) == expected
    assert parse("startingOffsets", json.dumps(document)) == expected


@given(offsets, st.randoms())
def test_equal_offsets_are_equal_text(original, random):
    shuffled = list(original.items())
    random.shuffle(shuffled)
    assert json.dumps(encode(dict(shuffled))) == json.dumps(encode(original))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a": 1}', '{"a": {"x": 1}}', '{"a": {"0": "1"}}', '{"a": {"0": 1.5}}']
)
def test_parse_rejects_invalid_json_and_names_the_option(text):
    with pytest.raises(InvalidRequestError, match="endingOffsets must be JSON like"):
        parse("endingOffsets", text)


def test_earliest_and_latest():
    assert resolved(GlobalOffset(EARLIEST)) == [5, 0]
    assert resolved(GlobalOffset(LATEST)) == [20, 0]


def test_specific_offsets_may_be_earliest_or_latest():
    assert resolved(SpecificOffsets({("orders", 0): 7, ("orders", 1): LATEST})) == [7, 0]
    assert resolved(SpecificOffsets({("orders", 0): EARLIEST, ("orders", 1): 0})) == [5, 0]
    assert resolved(SpecificOffsets({("orders", 0): 20, ("orders", 1): 0})) == [20, 0]


@pytest.mark.parametrize(("offset", "nearest"), [(4, 5), (21, 20)])
def test_resolve_rejects_offsets_out_of_range_unless_loss_is_allowed(offset, nearest):
    bound = SpecificOffsets({("orders", 0): offset, ("orders", 1): 0})
    with pytest.raises(
        OffsetOutOfRangeError,
        match=rf"startingOffsets: orders/0 has no offset {offset}.*from 5 to 20.*failOnDataLoss",
    ):
        resolved(bound)
    assert resolved(bound, LENIENT) == [nearest, 0]


def test_resolve_requires_every_partition_and_no_other():
    with pytest.raises(InvalidRequestError, match="startingOffsets lacks orders/1"):
        resolved(SpecificOffsets({("orders", 0): 7}))
    with pytest.raises(
        UnknownTopicError, match=r"names orders/2.*partitions are orders/0, orders/1"
    ):
        resolved(SpecificOffsets({("orders", 0): 7, ("orders", 1): 0, ("orders", 2): 0}))
    with pytest.raises(InvalidRequestError, match="startingOffsetsByTimestamp lacks orders/0"):
        resolved(SpecificTimestamps({("orders", 1): 7}))


def test_resolve_searches_timestamps():
    def search(timestamps_ms):
        assert timestamps_ms == {("orders", 0): 1000, ("orders", 1): 2000}
        return {("orders", 0): 11, ("orders", 1): 0}

    assert resolved(
        SpecificTimestamps({("orders", 0): 1000, ("orders", 1): 2000}), search=search
    ) == [11, 0]


def test_timestamp_after_the_last_record_is_an_error_or_the_latest_offset():
    def search(timestamps_ms):
        assert set(timestamps_ms.values()) == {1000}
        return {("orders", 0): 11, ("orders", 1): None}

    with pytest.raises(
        OffsetOutOfRangeError, match=r"after 1000 ms in orders/1; set starting.*latest"
    ):
        resolved(GlobalTimestamp(1000), search=search)
    assert resolved(GlobalTimestamp(1000), LENIENT, search) == [11, 0]
    assert resolved(GlobalTimestamp(1000), LENIENT) == [20, 0]


def test_is_latest():
    assert is_latest(GlobalOffset(LATEST))
    assert is_latest(SpecificOffsets({("a", 0): 3, ("a", 1): LATEST}))
    assert not is_latest(GlobalOffset(EARLIEST))
    assert not is_latest(SpecificOffsets({("a", 0): EARLIEST}))
    assert not is_latest(GlobalTimestamp(3))
