"""Guessing schemas: what wins over what, however the sample is cut."""

import json
from functools import reduce

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.spark.values import ddl, infer, observe, settle, unify


def binary(*rows):
    return pa.array([row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows])


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        ([1, 2], "a long"),
        ([1, 0.5], "a double"),
        ([2**63], "a double"),
        ([True, None], "a boolean"),
        (["2024-01-01", "2024-01-02T00:00:00Z"], "a string"),
        ([None], "a string"),
        ([1, "x"], "a string"),
        ([True, 1], "a string"),
        ([{"x": 1}, [1]], "a string"),
        ([{"x": 1}, 5], "a string"),
        ([{}], "a string"),
        ([[]], "a array<string>"),
        ([[1, None], [0.5]], "a array<double>"),
        ([[1, "x"]], "a array<string>"),
        ([{"x": 1}, {"y": {"z": "t"}, "x": 0.5}], "a struct<x: double, y: struct<z: string>>"),
        ([[{"x": 1}, {"y": True}]], "a array<struct<x: long, y: boolean>>"),
    ],
)
@pytest.mark.parametrize("more", [[], [b"{"], [b"[1]"]])
def test_what_is_seen_in_a_sample(values, schema, more):
    """The bad record beside it makes it go the careful way, with the same result."""
    assert infer(binary(*({"a": value} for value in values), *more)) == ddl.parse(schema)


def test_nothing_is_seen_in_nothing():
    assert infer(pa.array([None, b"\xff"], pa.binary())) == pa.schema([])


def test_deep_values_are_text_from_some_depth_on():
    deep = {"a": 1}
    for _ in range(40):
        deep = {"a": deep}
    fast, careful = infer(binary(deep)), infer(binary(deep, b"{"))
    assert fast == careful
    assert ddl.render(fast).count("struct") == 31


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, "x", "2024-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), min_size=1, max_size=5)


@given(ROWS)
def test_the_fast_and_the_careful_way_see_the_same(rows):
    assert sorted_fields(observe(binary(*rows))) == sorted_fields(observe(binary(*rows, b"{")))


@given(ROWS)
def test_parts_of_a_sample_are_seen_as_the_whole(rows):
    parts = reduce(unify, (observe(binary(row)) for row in rows))
    assert sorted_fields(settle(parts)) == sorted_fields(infer(binary(*rows)))


def sorted_fields(schema):
    """Names and types at every depth: the order of fields is that of their appearance."""
    return sorted((field.name, sorted_type(field.type)) for field in schema)


def sorted_type(type_):
    if pa.types.is_struct(type_):
        return str(sorted_fields(type_))
    return f"[{sorted_type(type_.value_type)}]" if pa.types.is_list(type_) else str(type_)
