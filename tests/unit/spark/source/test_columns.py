"""The columns of a topic: named by an option, typed as Spark wants them."""

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
from kafscale.spark.source import columns
from kafscale.spark.source.columns import ALL, ALL_WITH_HEADERS, Columns


def test_all_columns_are_those_of_sparks_kafka_source():
    names = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    assert ALL.names == names
    assert ALL_WITH_HEADERS.names == (*names, "headers")


def test_the_schema_is_the_one_that_spark_plans_for():
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
def test_an_option_names_columns_in_any_order_and_case(text, names):
    wanted = columns.parse(text)
    assert wanted.names == names
    assert tuple(wanted.schema.names) == names


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("offset,size,value,age", "no such columns: 'size', 'age'"),
        ("", "no such columns: ''"),
        ("offset,,value", "no such columns: ''"),
        ("offset,value,Offset,value", "named more than once: offset, value"),
    ],
)
def test_what_is_no_list_of_columns_is_refused_by_name(text, complaint):
    with pytest.raises(InvalidRequestError, match=complaint):
        columns.parse(text)


def test_columns_travel_to_tasks():
    wanted = columns.parse("key,headers")
    assert pickle.loads(pickle.dumps(wanted)) == wanted  # noqa: S301
    assert "headers" in wanted
    assert "value" not in wanted


@pytest.mark.parametrize("names", [(), ("offset", "key"), ("key", "key"), ("size",)])
def test_columns_are_some_of_those_that_there_are_in_their_order(names):
    with pytest.raises(AssertionError):
        Columns(names)
