"""Rows through a function of Arrow batches: Spark's `mapInArrow`, without pandas.

PySpark asks for pandas there, uses it for no more than to check a type, and it is a hundred
megabytes to install. So what `DataFrame.mapInArrow` does after that is done here.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Function = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def map_in_arrow(rows: "DataFrame", function: Function, schema: "StructType | str") -> "DataFrame":
    """What a function makes of the rows of each partition, in a schema of its own."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - it loads Spark.
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415
    from pyspark.util import PythonEvalType  # noqa: PLC0415

    wrapped = UserDefinedFunction(
        function, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = wrapped(*(rows[name] for name in rows.columns))
    made = rows._jdf.mapInArrow(column._jc, False, None)  # noqa: SLF001
    return DataFrame(made, rows.sparkSession)
