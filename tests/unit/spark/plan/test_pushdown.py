"""Filters narrow what is read, and what they do not settle is left to Spark."""

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

from kafscale.spark.plan.pushdown import narrow

TOPICS = ["clicks", "orders", "orders-eu"]
HELD = {
    EqualTo: lambda value, limit: value == limit,
    EqualNullSafe: lambda value, limit: value == limit,
    LessThan: lambda value, limit: value < limit,
    LessThanOrEqual: lambda value, limit: value <= limit,
    GreaterThan: lambda value, limit: value > limit,
    GreaterThanOrEqual: lambda value, limit: value >= limit,
    In: lambda value, limits: value in limits,
}
"""What Spark says that filters mean."""


def holds(found, record):
    if isinstance(found, Not):
        return not holds(found.child, record)
    value = record[found.attribute[0]]
    if isinstance(found, IsNull | IsNotNull):
        return isinstance(found, IsNotNull)
    return HELD[type(found)](value, found.value)


def comparisons(column, values):
    single = st.sampled_from([kind for kind in HELD if kind is not In])
    return st.one_of(
        st.builds(lambda kind, value: kind((column,), value), single, values),
        st.builds(lambda several: In((column,), tuple(several)), st.lists(values, max_size=4)),
        st.sampled_from([IsNull((column,)), IsNotNull((column,))]),
    )


simple = st.one_of(
    comparisons("topic", st.sampled_from([*TOPICS, "d", ""])),
    comparisons("partition", st.integers(-1, 4)),
    comparisons("offset", st.integers(-2, 12)),
)


@given(st.lists(st.one_of(simple, simple.map(Not)), max_size=4))
def test_what_is_taken_holds_for_all_that_is_left_and_nothing_else_is_lost(some):
    """A record is in scope if all filters hold for it, and only if those do that are taken."""
    scope, left = narrow(some)
    taken = [found for found in some if not any(found is other for other in left)]
    for topic in TOPICS:
        for partition in range(4):
            start, end = scope.clip(2, 10)
            for offset in range(2, 10):
                record = {"topic": topic, "partition": partition, "offset": offset}
                is_in = scope.has(topic, partition) and start <= offset < end
                if all(holds(found, record) for found in some):
                    assert is_in
                if is_in:
                    assert all(holds(found, record) for found in taken)


def test_offsets_partitions_and_topics_are_taken_in_full():
    scope, left = narrow(
        [
            GreaterThanOrEqual(("offset",), 5),
            LessThan(("offset",), 9),
            In(("partition",), (1, 2)),
            Not(EqualTo(("topic",), "clicks")),
            IsNotNull(("offset",)),
        ]
    )
    assert left == []
    assert scope.clip(0, 100) == (5, 9)
    assert scope.clip(7, 8) == (7, 8)
    assert scope.clip(20, 30) == (20, 20)
    assert scope.has("orders", 1)
    assert not scope.has("orders", 3)
    assert not scope.has("clicks", 1)


@pytest.mark.parametrize(
    ("found", "passed"),
    [
        (StringStartsWith(("topic",), "ord"), ["orders", "orders-eu"]),
        (StringEndsWith(("topic",), "s"), ["clicks", "orders"]),
        (StringContains(("topic",), "rs-"), ["orders-eu"]),
        (Not(StringContains(("topic",), "rs-")), ["clicks", "orders"]),
    ],
)
def test_parts_of_names(found, passed):
    scope, left = narrow([found])
    assert left == []
    assert [topic for topic in TOPICS if scope.has(topic, 0)] == passed


def test_offsets_with_gaps_between_them_narrow_and_are_left_to_spark():
    some = In(("offset",), (3, 9, 5))
    scope, left = narrow([some])
    assert left == [some]
    assert scope.clip(0, 100) == (3, 10)
    assert narrow([In(("offset",), (5, 4, 3))])[1] == []


def test_times_narrow_from_below_and_are_left_to_spark():
    late = datetime(2026, 1, 2, tzinfo=UTC)
    early = datetime(2026, 1, 1, 0, 0, 0, 1999, tzinfo=UTC)
    earlier = datetime(2020, 1, 1, tzinfo=UTC)
    early_ms = 1767225600001
    for some in [
        [GreaterThan(("timestamp",), early)],
        [GreaterThanOrEqual(("timestamp",), early)],
        [EqualTo(("timestamp",), early)],
        [In(("timestamp",), (late, early))],
        [GreaterThan(("timestamp",), early), LessThan(("timestamp",), late)],
        [GreaterThan(("timestamp",), early), GreaterThan(("timestamp",), earlier)],
    ]:
        scope, left = narrow(some)
        assert left == some
        assert scope.since_ms == early_ms


@pytest.mark.parametrize(
    "found",
    [
        LessThan(("timestamp",), datetime(2026, 1, 1, tzinfo=UTC)),
        GreaterThan(("timestamp",), datetime(2026, 1, 1)),  # noqa: DTZ001 - what zone, nobody says.
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
def test_what_is_not_understood_is_left_as_it_is(found):
    scope, left = narrow([found])
    assert left == [found]
    assert scope.has("any", 0)
    assert scope.clip(0, 100) == (0, 100)
    assert scope.since_ms is None
