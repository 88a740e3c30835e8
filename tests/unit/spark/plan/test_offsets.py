"""Offsets as queries say them come to offsets of the log, or are refused by name."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRequestError, OffsetOutOfRangeError, UnknownTopicError
from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.spark.plan.offsets import (
    EARLIEST,
    LATEST,
    Everywhere,
    Named,
    Side,
    Since,
    SinceEach,
    decode,
    encode,
    is_latest,
    parse,
    resolve,
)

PARTITIONS = {
    ("orders", 0): PartitionOffsets("orders", 0, 5, 20),
    ("orders", 1): PartitionOffsets("orders", 1, 0, 0),
}
STARTING = Side("starting", needs_record=True)
LENIENT = Side("starting", needs_record=False, clips=True)


def nothing_younger(wanted):
    return dict.fromkeys(wanted)


def meaning(bound, side=STARTING, search=nothing_younger):
    found = resolve(bound, PARTITIONS, side, search)
    return [found["orders", 0], found["orders", 1]]


offsets = st.dictionaries(
    st.tuples(st.text(min_size=1), st.integers(0, 2**31 - 1)), st.integers(-2, 2**63 - 1)
)


@given(offsets)
def test_json_there_and_back(some):
    document = encode(some)
    assert decode(json.loads(json.dumps(document))) == some
    assert parse("startingOffsets", json.dumps(document)) == some


@given(offsets, st.randoms())
def test_equal_offsets_are_equal_text(some, random):
    shuffled = list(some.items())
    random.shuffle(shuffled)
    assert json.dumps(encode(dict(shuffled))) == json.dumps(encode(some))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a": 1}', '{"a": {"x": 1}}', '{"a": {"0": "1"}}', '{"a": {"0": 1.5}}']
)
def test_what_is_no_json_of_offsets_is_refused_by_the_name_of_its_option(text):
    with pytest.raises(InvalidRequestError, match="endingOffsets is like"):
        parse("endingOffsets", text)


def test_words():
    assert meaning(Everywhere(EARLIEST)) == [5, 0]
    assert meaning(Everywhere(LATEST)) == [20, 0]


def test_named_offsets_and_their_two_signs():
    assert meaning(Named({("orders", 0): 7, ("orders", 1): LATEST})) == [7, 0]
    assert meaning(Named({("orders", 0): EARLIEST, ("orders", 1): 0})) == [5, 0]
    assert meaning(Named({("orders", 0): 20, ("orders", 1): 0})) == [20, 0]


@pytest.mark.parametrize(("offset", "nearest"), [(4, 5), (21, 20)])
def test_an_offset_that_is_not_there_is_refused_unless_loss_is_allowed(offset, nearest):
    bound = Named({("orders", 0): offset, ("orders", 1): 0})
    with pytest.raises(
        OffsetOutOfRangeError,
        match=rf"startingOffsets: orders/0 has no offset {offset}.*from 5 to 20.*failOnDataLoss",
    ):
        meaning(bound)
    assert meaning(bound, LENIENT) == [nearest, 0]


def test_every_partition_has_to_be_named_and_no_other():
    with pytest.raises(InvalidRequestError, match="startingOffsets leaves out orders/1"):
        meaning(Named({("orders", 0): 7}))
    with pytest.raises(UnknownTopicError, match=r"names orders/2.*there is orders/0, orders/1"):
        meaning(Named({("orders", 0): 7, ("orders", 1): 0, ("orders", 2): 0}))
    with pytest.raises(InvalidRequestError, match="startingOffsetsByTimestamp leaves out orders/0"):
        meaning(SinceEach({("orders", 1): 7}))


def test_times_are_looked_up():
    def search(wanted):
        assert wanted == {("orders", 0): 1000, ("orders", 1): 2000}
        return {("orders", 0): 11, ("orders", 1): 0}

    assert meaning(SinceEach({("orders", 0): 1000, ("orders", 1): 2000}), search=search) == [11, 0]


def test_a_time_that_no_record_has_reached_is_an_error_or_the_latest_offset():
    def search(wanted):
        assert set(wanted.values()) == {1000}
        return {("orders", 0): 11, ("orders", 1): None}

    with pytest.raises(OffsetOutOfRangeError, match=r"after 1000 ms in orders/1; starting.*latest"):
        meaning(Since(1000), search=search)
    assert meaning(Since(1000), LENIENT, search) == [11, 0]
    assert meaning(Since(1000), LENIENT) == [20, 0]


def test_which_bounds_depend_on_when_they_are_looked_at():
    assert is_latest(Everywhere(LATEST))
    assert is_latest(Named({("a", 0): 3, ("a", 1): LATEST}))
    assert not is_latest(Everywhere(EARLIEST))
    assert not is_latest(Named({("a", 0): EARLIEST}))
    assert not is_latest(Since(3))
