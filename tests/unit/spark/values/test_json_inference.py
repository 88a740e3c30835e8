"""Tests of the inference of JSON schemas."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.spark.values import ddl, infer, observe


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
def test_infer_types(values, schema, more):
    """An invalid record disables the fast reader, with the same result."""
    assert infer(binary(*({"a": value} for value in values), *more)) == ddl.parse(schema)


def test_infer_without_objects():
    assert infer(pa.array([None, b"\xff"], pa.binary())) == pa.schema([])


def test_deep_values_become_text():
    deep = {"a": 1}
    for _ in range(40):
        deep = {"a": deep}
    fast, exact = infer(binary(deep)), infer(binary(deep, b"{"))
    assert fast == exact
    assert ddl.render(fast).count("struct") == 31


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, "x", "2024-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), min_size=1, max_size=5)


@given(ROWS)
def test_fast_and_exact_observation_agree(rows):
    assert sorted_fields(observe(binary(*rows))) == sorted_fields(observe(binary(*rows, b"{")))


def sorted_fields(schema):
    """Return names and types at every depth, sorted."""
    return sorted((field.name, sorted_type(field.type)) for field in schema)


def sorted_type(type_):
    if pa.types.is_struct(type_):
        return str(sorted_fields(type_))
    return f"[{sorted_type(type_.value_type)}]" if pa.types.is_list(type_) else str(type_)
