"""Spark's `DataFrame.mapInArrow`, without pandas.

PySpark requires pandas there only to check a type, and pandas takes a hundred megabytes. This does
the same without the check.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Function = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def map_in_arrow(rows: "DataFrame", function: Function, schema: "StructType | str") -> "DataFrame":
    """Apply a function to the Arrow batches of each partition; `schema` is that of its result."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - it loads Spark.
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415
    from pyspark.util import PythonEvalType  # noqa: PLC0415

    wrapped = UserDefinedFunction(
        function, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = wrapped(*(rows[name] for name in rows.columns))
    mapped = rows._jdf.mapInArrow(column._jc, False, None)  # noqa: SLF001
    return DataFrame(mapped, rows.sparkSession)
