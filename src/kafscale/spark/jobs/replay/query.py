"""What a replay does with records on their way: SQL that filters and changes them.

A record is a row of the columns of Spark's Kafka source, and two more for the convenience of
expressions: `text`, the value as text, and `json`, the value as JSON, of type VARIANT and null
where it is none. Neither costs anything unless it is used.

The laws: rows stay in the order of their offsets and in the task of their partition, as nothing
here shuffles; `partition` and `offset` go through unchanged, because they say what was written.
Whatever expressions make of a key or value is written as bytes: text as UTF-8, structures as JSON,
numbers and the like as text.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafscale.errors import InvalidRequestError
from kafscale.spark.plan.task_planner import Slice, Task
from kafscale.spark.read.task import read_task
from kafscale.spark.runtime.map_in_arrow import map_in_arrow
from kafscale.spark.source.columns import ALL_WITH_HEADERS
from kafscale.spark.source.location import Location
from kafscale.spark.source.query import spark_schema
from kafscale.spark.sql.errors import sentence, silence

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MADE: Final = ("key", "value", "timestamp", "headers")
"""What expressions may make of a record."""

HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"


def records_of(spark: "SparkSession", location: Location, slices: Sequence[Slice]) -> "DataFrame":
    """The records of slices, each in a task of its own and in order."""
    numbers = spark.range(0, len(slices), 1, len(slices))
    schema = spark_schema(ALL_WITH_HEADERS)
    return map_in_arrow(numbers, partial(_read, location, tuple(slices)), schema)


def changed(records: "DataFrame", where: str, select: Sequence[str]) -> "DataFrame":
    """The records that a filter leaves, as expressions change them."""
    from pyspark.errors import AnalysisException, ParseException  # noqa: PLC0415 - loads Spark.
    from pyspark.sql import functions as sql  # noqa: PLC0415

    silence()
    text = sql.col("value").cast("string")
    rows = records.withColumns({"text": text, "json": sql.try_parse_json(text)})
    try:
        if where:
            rows = rows.where(where)
        made = rows.selectExpr(*select).columns if select else []
        unknown = [name for name in made if name not in MADE]
        if unknown or len(set(made)) < len(made):
            raise InvalidRequestError(
                f"expressions make {', '.join(made)}; name them with AS, each once,"
                f" after what they make: {', '.join(MADE)}"
            )
        kept = [name for name in (*MADE, "partition", "offset") if name not in made]
        result = rows.selectExpr(*select, *kept)
        return result.select(*(_conformed(result, name) for name in (*MADE, "partition", "offset")))
    except (AnalysisException, ParseException) as error:
        raise InvalidRequestError(
            f"where or select cannot be understood: {sentence(error)}"
        ) from None


def _conformed(rows: "DataFrame", name: str) -> "Column":
    """A column in the type that the sink expects."""
    from pyspark.sql import functions as sql  # noqa: PLC0415 - it loads Spark.
    from pyspark.sql import types  # noqa: PLC0415

    column, kind = rows[name], rows.schema[name].dataType
    if name in {"key", "value"} and not isinstance(kind, types.BinaryType):
        is_nested = isinstance(
            kind, (types.StructType, types.MapType, types.ArrayType, types.VariantType)
        )
        column = sql.to_json(column) if is_nested else column.cast("string")
        column = column.cast("binary")
    elif name == "timestamp" and isinstance(kind, types.LongType):
        column = sql.timestamp_millis(column)
    elif name == "timestamp":
        column = column.cast("timestamp")
    elif name == "headers":
        column = column.cast(HEADERS_TYPE)
    return column.alias(name)


def _read(
    location: Location, slices: Sequence[Slice], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from read_task(location, Task((slices[number],)), ALL_WITH_HEADERS)
