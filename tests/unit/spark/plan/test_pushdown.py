"""Tests of filter pushdown: bounds of the scan, and filters returned to Spark."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from kafscale.spark.plan.pushdown import push_down

TOPICS = ["clicks", "orders", "orders-eu"]
COMPARISONS = {
    EqualTo: lambda value, limit: value == limit,
    EqualNullSafe: lambda value, limit: value == limit,
    LessThan: lambda value, limit: value < limit,
    LessThanOrEqual: lambda value, limit: value <= limit,
    GreaterThan: lambda value, limit: value > limit,
    GreaterThanOrEqual: lambda value, limit: value >= limit,
    In: lambda value, limits: value in limits,
}
"""The meaning of filters in Spark."""


def holds(filter_, record):
    if isinstance(filter_, Not):
        return not holds(filter_.child, record)
    value = record[filter_.attribute[0]]
    if isinstance(filter_, IsNull | IsNotNull):
        return isinstance(filter_, IsNotNull)
    return COMPARISONS[type(filter_)](value, filter_.value)


def comparisons(column, values):
    kinds = st.sampled_from([kind for kind in COMPARISONS if kind is not In])
    return st.one_of(
        st.builds(lambda kind, value: kind((column,), value), kinds, values),
        st.builds(lambda several: In((column,), tuple(several)), st.lists(values, max_size=4)),
        st.sampled_from([IsNull((column,)), IsNotNull((column,))]),
    )


simple = st.one_of(
    comparisons("topic", st.sampled_from([*TOPICS, "d", ""])),
    comparisons("partition", st.integers(-1, 4)),
    comparisons("offset", st.integers(-2, 12)),
)


@given(st.lists(st.one_of(simple, simple.map(Not)), max_size=4))
def test_bounds_keep_matching_records_and_exclude_the_others(filters):
    """A record that passes all filters is in bounds; one in bounds passes the accepted filters."""
    bounds, remaining = push_down(filters)
    accepted = [each for each in filters if not any(each is other for other in remaining)]
    for topic in TOPICS:
        for partition in range(4):
            start, end = bounds.clip(2, 10)
            for offset in range(2, 10):
                record = {"topic": topic, "partition": partition, "offset": offset}
                is_in = bounds.includes(topic, partition) and start <= offset < end
                if all(holds(each, record) for each in filters):
                    assert is_in
                if is_in:
                    assert all(holds(each, record) for each in accepted)


def test_push_down_accepts_offsets_partitions_and_topics():
    bounds, remaining = push_down(
        [
            GreaterThanOrEqual(("offset",), 5),
            LessThan(("offset",), 9),
            In(("partition",), (1, 2)),
            Not(EqualTo(("topic",), "clicks")),
            IsNotNull(("offset",)),
        ]
    )
    assert remaining == []
    assert bounds.clip(0, 100) == (5, 9)
    assert bounds.clip(7, 8) == (7, 8)
    assert bounds.clip(20, 30) == (20, 20)
    assert bounds.includes("orders", 1)
    assert not bounds.includes("orders", 3)
    assert not bounds.includes("clicks", 1)


@pytest.mark.parametrize(
    ("filter_", "passed"),
    [
        (StringStartsWith(("topic",), "ord"), ["orders", "orders-eu"]),
        (StringEndsWith(("topic",), "s"), ["clicks", "orders"]),
        (StringContains(("topic",), "rs-"), ["orders-eu"]),
        (Not(StringContains(("topic",), "rs-")), ["clicks", "orders"]),
    ],
)
def test_push_down_accepts_string_filters_on_topics(filter_, passed):
    bounds, remaining = push_down([filter_])
    assert remaining == []
    assert [topic for topic in TOPICS if bounds.includes(topic, 0)] == passed


def test_offsets_with_gaps_narrow_the_scan_and_are_returned():
    filter_ = In(("offset",), (3, 9, 5))
    bounds, remaining = push_down([filter_])
    assert remaining == [filter_]
    assert bounds.clip(0, 100) == (3, 10)
    assert push_down([In(("offset",), (5, 4, 3))])[1] == []


def test_lower_timestamp_bounds_narrow_the_scan_and_are_returned():
    late = datetime(2026, 1, 2, tzinfo=UTC)
    early = datetime(2026, 1, 1, 0, 0, 0, 1999, tzinfo=UTC)
    earlier = datetime(2020, 1, 1, tzinfo=UTC)
    early_ms = 1767225600001
    for filters in [
        [GreaterThan(("timestamp",), early)],
        [GreaterThanOrEqual(("timestamp",), early)],
        [EqualTo(("timestamp",), early)],
        [In(("timestamp",), (late, early))],
        [GreaterThan(("timestamp",), early), LessThan(("timestamp",), late)],
        [GreaterThan(("timestamp",), early), GreaterThan(("timestamp",), earlier)],
    ]:
        bounds, remaining = push_down(filters)
        assert remaining == filters
        assert bounds.since_ms == early_ms


@pytest.mark.parametrize(
    "filter_",
    [
        LessThan(("timestamp",), datetime(2026, 1, 1, tzinfo=UTC)),
        GreaterThan(("timestamp",), datetime(2026, 1, 1)),  # noqa: DTZ001 - no time zone.
        Not(GreaterThan(("timestamp",), datetime(2026, 1, 1, tzinfo=UTC))),
        EqualTo(("key",), b"x"),
        IsNotNull(("value",)),
        EqualTo(("headers", "element"), "x"),
        EqualTo(("partition",), "1"),
        EqualTo(("topic",), 1),
        StringStartsWith(("partition",), "1"),
        StringStartsWith(("key",), "1"),
        Not(GreaterThan(("offset",), 5)),
        EqualTo(("offset",), "5"),
    ],
)
def test_unsupported_filters_are_returned_unchanged(filter_):
    bounds, remaining = push_down([filter_])
    assert remaining == [filter_]
    assert bounds.includes("any", 0)
    assert bounds.clip(0, 100) == (0, 100)
    assert bounds.since_ms is None
