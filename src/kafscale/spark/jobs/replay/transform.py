"""Transforms the records of a replay: a SQL filter, SQL expressions and a user function.

A record is a row with the columns of Spark's Kafka source, and two more for expressions: `text`,
the value as text, and `json`, the value as VARIANT, null if it is not valid JSON. Neither costs
anything unless it is used.

Invariants: rows stay in offset order and in the task of their partition, because there is no
shuffle. `partition` and `offset` do not change, because progress is tracked by them. Keys and
values that expressions return are written as bytes: text as UTF-8, structures as JSON, other types
as text.

The user function gets Arrow batches with the columns key, value, timestamp, headers, partition and
offset, and returns the same columns for any number of records in offset order. The offset of a
returned record must be that of the record it was made from.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafscale.errors import InvalidRequestError
from kafscale.spark.codec.columns import ALL_WITH_HEADERS
from kafscale.spark.plan.task_planner import Slice, Task
from kafscale.spark.read.location import Location
from kafscale.spark.read.task import read_task
from kafscale.spark.runtime.errors import error_message, silence_query_logger
from kafscale.spark.source.query import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

OUTPUT_COLUMNS: Final = ("key", "value", "timestamp", "headers")
"""The columns that expressions may set."""

HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"

Function = Callable[[pa.RecordBatch], pa.RecordBatch]
MapFunction = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def read_slices(spark: "SparkSession", location: Location, slices: Sequence[Slice]) -> "DataFrame":
    """Return the records of slices, each slice in order in its own task."""
    numbers = spark.range(0, len(slices), 1, len(slices))
    schema = spark_schema(ALL_WITH_HEADERS)
    return map_in_arrow(numbers, partial(_read, location, tuple(slices)), schema)


def filter_and_select(records: "DataFrame", where: str, select: Sequence[str]) -> "DataFrame":
    """Apply a filter and expressions to records."""
    from pyspark.errors import AnalysisException, ParseException  # noqa: PLC0415 - loads Spark.
    from pyspark.sql import functions as sql  # noqa: PLC0415

    silence_query_logger()
    text = sql.col("value").cast("string")
    rows = records.withColumns({"text": text, "json": sql.try_parse_json(text)})
    try:
        if where:
            rows = rows.where(where)
        names = rows.selectExpr(*select).columns if select else []
        unknown = [name for name in names if name not in OUTPUT_COLUMNS]
        if unknown or len(set(names)) < len(names):
            raise InvalidRequestError(
                f"select returns the columns {', '.join(names)}; name each expression with AS,"
                f" once, as one of {', '.join(OUTPUT_COLUMNS)}"
            )
        columns = (*OUTPUT_COLUMNS, "partition", "offset")
        result = rows.selectExpr(*select, *(name for name in columns if name not in names))
        return result.select(*(_cast(result, name) for name in columns))
    except (AnalysisException, ParseException) as error:
        raise InvalidRequestError(f"invalid where or select: {error_message(error)}") from None


def _cast(rows: "DataFrame", name: str) -> "Column":
    """Cast a column to the type that the sink expects."""
    from pyspark.sql import functions as sql  # noqa: PLC0415 - it loads Spark.
    from pyspark.sql import types  # noqa: PLC0415

    column, data_type = rows[name], rows.schema[name].dataType
    if name in {"key", "value"} and not isinstance(data_type, types.BinaryType):
        is_nested = isinstance(
            data_type, (types.StructType, types.MapType, types.ArrayType, types.VariantType)
        )
        column = sql.to_json(column) if is_nested else column.cast("string")
        column = column.cast("binary")
    elif name == "timestamp" and isinstance(data_type, types.LongType):
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


def load_function(name: str) -> Function:
    """Return the function that `module:function` names, so that it can be sent to tasks."""
    from pyspark import cloudpickle  # noqa: PLC0415 - it loads Spark.

    module_name, _, function_name = name.partition(":")
    if not (module_name and function_name):
        raise InvalidRequestError(f"invalid function {name!r}: expected module:function")
    try:
        module = importlib.import_module(module_name)
        function: Function = getattr(module, function_name)
    except (ImportError, AttributeError) as error:
        raise InvalidRequestError(f"cannot load function {name}: {error}") from None
    # The module need not be installed where tasks run.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return function


def apply_function(function: Function, records: pa.RecordBatch) -> pa.RecordBatch:
    """Apply the user function, and check that the result has the required columns."""
    result = function(records)
    if not isinstance(result, pa.RecordBatch):
        raise InvalidRequestError(
            f"the function must return a RecordBatch, not {type(result).__name__}"
        )
    missing = [
        name for name in ("key", "value", "timestamp", "offset") if name not in result.schema.names
    ]
    if missing:
        raise InvalidRequestError(
            f"the result of the function lacks the columns {', '.join(missing)}"
        )
    return result


def map_in_arrow(
    rows: "DataFrame", function: MapFunction, schema: "StructType | str"
) -> "DataFrame":
    """Apply a function to the Arrow batches of each partition; `schema` is that of its result.

    This is Spark's `DataFrame.mapInArrow` without pandas. PySpark requires pandas there only to
    check a type, and pandas takes a hundred megabytes.
    """
    from pyspark.sql import DataFrame  # noqa: PLC0415 - it loads Spark.
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415
    from pyspark.util import PythonEvalType  # noqa: PLC0415

    wrapped = UserDefinedFunction(
        function, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = wrapped(*(rows[name] for name in rows.columns))
    mapped = rows._jdf.mapInArrow(column._jc, False, None)  # noqa: SLF001
    return DataFrame(mapped, rows.sparkSession)
