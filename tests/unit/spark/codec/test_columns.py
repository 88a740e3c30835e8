"""Tests of the columns: parsing of the option, and Arrow types."""

import pickle

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from kafscale.errors import InvalidRequestError
from kafscale.spark.codec import columns
from kafscale.spark.codec.columns import ALL, ALL_WITH_HEADERS, Columns


def test_columns_are_those_of_sparks_kafka_source():
    names = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    assert ALL.names == names
    assert ALL_WITH_HEADERS.names == (*names, "headers")


def test_arrow_schema_is_the_one_that_spark_plans():
    """Spark compares the two exactly."""
    header = StructType().add("key", StringType()).add("value", BinaryType())
    table = (
        StructType()
        .add("key", BinaryType())
        .add("value", BinaryType())
        .add("topic", StringType())
        .add("partition", IntegerType())
        .add("offset", LongType())
        .add("timestamp", TimestampType())
        .add("timestampType", IntegerType())
        .add("headers", ArrayType(header))
    )
    planned = to_arrow_schema(table, timezone="UTC")
    assert planned.equals(ALL_WITH_HEADERS.schema)
    assert str(planned) == str(ALL_WITH_HEADERS.schema)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("offset", ("offset",)),
        ("offset,value", ("value", "offset")),
        (" TIMESTAMPTYPE , Headers ", ("timestampType", "headers")),
        (",".join(reversed(columns.NAMES)), columns.NAMES),
    ],
)
def test_parse_accepts_any_order_and_case(text, names):
    selected = columns.parse(text)
    assert selected.names == names
    assert tuple(selected.schema.names) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("offset,size,value,age", "unknown columns 'size', 'age'"),
        ("", "unknown columns ''"),
        ("offset,,value", "unknown columns ''"),
        ("offset,value,Offset,value", "columns are repeated: offset, value"),
    ],
)
def test_parse_rejects_unknown_and_repeated_columns(text, message):
    with pytest.raises(InvalidRequestError, match=message):
        columns.parse(text)


def test_columns_can_be_pickled():
    selected = columns.parse("key,headers")
    assert pickle.loads(pickle.dumps(selected)) == selected  # noqa: S301
    assert "headers" in selected
    assert "value" not in selected


@pytest.mark.parametrize("names", [(), ("offset", "key"), ("key", "key"), ("size",)])
def test_columns_must_be_known_ordered_and_distinct(names):
    with pytest.raises(AssertionError):
        Columns(names)
