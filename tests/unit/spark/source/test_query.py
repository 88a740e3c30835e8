"""Tests of queries: schemas and reading of tasks."""

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from kafscale.errors import InvalidRequestError
from kafscale.spark.codec import columns
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.read.bucket_listing import list_bucket
from kafscale.spark.read.location import Location
from kafscale.spark.source import options
from kafscale.spark.source.query import Query, spark_schema
from unit.spark.stored_log import put_segment

OFFSET = StructField("offset", LongType())


@pytest.fixture
def location(tmp_path):
    (tmp_path / "objects").mkdir()
    return Location.parse(str(tmp_path))


def query(location, schema):
    return Query.of(location, options.parse({"subscribe": "orders", "path": "x"}), schema)


def test_spark_schema_is_that_of_sparks_kafka_source():
    assert spark_schema(columns.ALL_WITH_HEADERS).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            [StructField("offfset", LongType())],
            "unknown column 'offfset'; the columns are key, value",
        ),
        ([StructField("offset", IntegerType())], "column offset has type bigint, not int"),
        ([StructField("offset", LongType(), nullable=False)], "offset cannot be NOT NULL"),
        ([OFFSET, OFFSET], "repeats some"),
        ([], "the schema has no columns"),
    ],
)
def test_query_rejects_other_schemas(location, fields, message):
    with pytest.raises(InvalidRequestError, match=message):
        query(location, StructType(fields))


def test_columns_are_read_in_the_order_of_the_schema(location):
    with location.open() as store:
        put_segment(store, range(20))
        offset_map = list_bucket(store, location.namespace)
    selected = query(location, StructType([OFFSET, StructField("topic", StringType())]))
    (planned,) = selected.plan(offset_map, [OffsetRange("orders", 0, 3, 5)])
    (batch,) = selected.read(planned)
    assert batch.schema.names == ["offset", "topic"]
    assert batch.to_pylist() == [{"offset": 3, "topic": "orders"}, {"offset": 4, "topic": "orders"}]


def test_an_empty_plan_reads_nothing(location):
    assert list(query(location, StructType([OFFSET])).read(InputPartition(None))) == []
