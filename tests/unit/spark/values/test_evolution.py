"""Tests of schema evolution: allowed changes and casts."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRequestError
from kafscale.spark.values import conform, extend
from kafscale.spark.values.base import list_of

UTC = pa.timestamp("us", tz="UTC")


def single_column(type_):
    return pa.schema([("a", type_)])


def struct(**types):
    return pa.struct(list(types.items()))


@pytest.mark.parametrize(
    ("table", "found", "merged"),
    [
        (pa.int32(), pa.int32(), pa.int32()),
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.int8(), pa.int32(), pa.int32()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.float64(), pa.float32(), pa.float64()),
        (pa.float64(), pa.int64(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(12, 2), pa.decimal128(12, 2)),
        (pa.decimal128(12, 2), pa.decimal128(10, 2), pa.decimal128(12, 2)),
        (pa.large_string(), pa.string(), pa.large_string()),
        (pa.binary(), pa.large_binary(), pa.binary()),
        (UTC, pa.timestamp("ms", tz="UTC"), UTC),
        (pa.string(), pa.null(), pa.string()),
        (pa.null(), pa.int64(), pa.int64()),
        (list_of(pa.int32()), list_of(pa.int64()), list_of(pa.int64())),
        (
            pa.map_(pa.string(), pa.int32()),
            pa.map_(pa.string(), pa.int64()),
            pa.map_(pa.string(), pa.int64()),
        ),
        (
            struct(x=pa.int32()),
            struct(y=pa.string(), x=pa.int64()),
            struct(x=pa.int64(), y=pa.string()),
        ),
        (
            list_of(struct(x=pa.int32())),
            list_of(struct(y=pa.bool_())),
            list_of(struct(x=pa.int32(), y=pa.bool_())),
        ),
    ],
)
def test_extend_widens_columns(table, found, merged):
    assert extend(single_column(table), single_column(found)) == single_column(merged)


@pytest.mark.parametrize(
    ("table", "found"),
    [
        (pa.int64(), pa.string()),
        (pa.int64(), pa.float64()),
        (pa.int32(), pa.float32()),
        (pa.float32(), pa.int32()),
        (pa.string(), pa.binary()),
        (pa.date32(), UTC),
        (UTC, pa.timestamp("us")),
        (UTC, pa.timestamp("ns", tz="UTC")),
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
        (pa.bool_(), pa.int32()),
        (struct(x=pa.int32()), pa.string()),
        (struct(x=pa.int32()), struct(x=pa.string())),
        (list_of(pa.int32()), list_of(pa.string())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.bool_())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.int32(), pa.int32())),
    ],
)
def test_extend_ignores_other_changes(table, found):
    assert extend(single_column(table), single_column(found)) == single_column(table)


def test_new_columns_are_last_and_nullable():
    table = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    found = pa.schema([pa.field("new", pa.bool_(), nullable=False), ("name", pa.string())])
    assert extend(table, found) == pa.schema([*table, pa.field("new", pa.bool_())])


def test_conform_casts_and_fills_columns():
    batch = pa.RecordBatch.from_pylist(
        [
            {"b": 1, "a": {"x": 1}, "l": [{"p": 1}, None], "m": [("k", 5)]},
            {"b": None, "a": None, "l": None, "m": None},
            {"b": 3, "a": {"x": None}, "l": [], "m": []},
        ],
        pa.schema(
            [
                ("b", pa.int32()),
                ("a", struct(x=pa.int32())),
                ("l", list_of(struct(p=pa.int32()))),
                ("m", pa.map_(pa.string(), pa.int32())),
            ]
        ),
    )
    schema = pa.schema(
        [
            ("a", struct(y=pa.string(), x=pa.int64())),
            ("b", pa.float64()),
            ("c", list_of(pa.string())),
            ("l", list_of(struct(p=pa.int64(), q=pa.bool_()))),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    rows = [
        {
            "a": {"y": None, "x": 1},
            "b": 1.0,
            "c": None,
            "l": [{"p": 1, "q": None}, None],
            "m": [("k", 5)],
        },
        {"a": None, "b": None, "c": None, "l": None, "m": None},
        {"a": {"y": None, "x": None}, "b": 3.0, "c": None, "l": [], "m": []},
    ]
    conformed = conform(batch, schema)
    assert conformed.schema == schema
    assert conformed.to_pylist() == rows
    conformed.validate(full=True)
    assert conform(batch.slice(1, 2), schema).to_pylist() == rows[1:]


def test_conform_large_lists():
    batch = pa.RecordBatch.from_pylist(
        [{"a": [{"x": 1}]}], single_column(list_of(struct(x=pa.int32())))
    )
    schema = single_column(pa.large_list(struct(x=pa.int64(), y=pa.string())))
    back = single_column(list_of(struct(x=pa.int64(), y=pa.string())))
    large = conform(batch, schema)
    assert large.schema == schema
    assert large.to_pylist() == conform(large, back).to_pylist() == [{"a": [{"x": 1, "y": None}]}]


@pytest.mark.parametrize("value", [2**40, -(2**31) - 1])
def test_conform_rejects_values_out_of_range(value):
    batch = pa.RecordBatch.from_pylist([{"a": {"x": value}}])
    with pytest.raises(InvalidRequestError, match=r"column a\.x is int32"):
        conform(batch, single_column(struct(x=pa.int32())))


NUMBERS = st.sampled_from([pa.int32(), pa.int64(), pa.float32(), pa.float64()])


@given(
    st.dictionaries(st.sampled_from("abc"), NUMBERS, min_size=1),
    st.dictionaries(st.sampled_from("bcd"), NUMBERS, min_size=1),
)
def test_merged_schemas_accept_both_batches(table, found):
    table, found = (pa.schema(list(types.items())) for types in (table, found))
    merged = extend(table, found)
    assert merged.names[: len(table)] == table.names
    for schema in (table, found):
        batch = pa.RecordBatch.from_pylist([dict.fromkeys(schema.names, 1)], schema)
        row = conform(batch, merged).to_pylist()[0]
        assert row == {name: 1 if name in schema.names else None for name in merged.names}
