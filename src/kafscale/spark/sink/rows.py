"""The rows of the sink: the columns of Spark's Kafka sink, brought to the form of the encoder.

`value` is required; `key`, `headers`, `topic` and `partition` are optional; others are ignored, as
Spark's sink does. Key and value are text or bytes. Without the option `topic`, each row names its
topic. Pure.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from kafscale.errors import InvalidRequestError

_BYTES: Final = (StringType, BinaryType)
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_MICROSECONDS: Final = 1000


def check_schema(schema: StructType, topic: str) -> None:
    """Raise an error if the columns of a frame cannot be written."""
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise InvalidRequestError(f"the column value is missing; there are {', '.join(types)}")
    if not topic and "topic" not in types:
        raise InvalidRequestError("set the option topic, or add a column topic")
    for name in ("key", "value"):
        if name in types and not isinstance(types[name], _BYTES):
            raise _wrong_type(name, types[name], "string or binary")
    if not topic and not isinstance(types["topic"], StringType):
        raise _wrong_type("topic", types["topic"], "string")
    if "partition" in types and not isinstance(types["partition"], IntegerType):
        raise _wrong_type("partition", types["partition"], "int")
    if "headers" in types and not _are_headers(types["headers"]):
        raise _wrong_type("headers", types["headers"], "array<struct<key:string,value:binary>>")


def _are_headers(data_type: DataType) -> bool:
    if not (isinstance(data_type, ArrayType) and isinstance(data_type.elementType, StructType)):
        return False
    kinds = [(field.name, type(field.dataType)) for field in data_type.elementType.fields]
    return kinds == [("key", StringType), ("value", BinaryType)]


def _wrong_type(name: str, data_type: DataType, expected: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"column {name} has type {data_type.simpleString()}, but must be {expected}"
    )


def to_records(rows: pa.RecordBatch, now_ms: int) -> pa.RecordBatch:
    """Return the columns that the encoder needs; every record gets the current time."""
    times = pa.repeat(pa.scalar(now_ms * _MICROSECONDS, pa.timestamp("us", "UTC")), rows.num_rows)
    columns = {"timestamp": times, "value": rows.column("value").cast(pa.binary())}
    names = rows.schema.names
    columns["key"] = (
        rows.column("key").cast(pa.binary())
        if "key" in names
        else pa.nulls(rows.num_rows, pa.binary())
    )
    if "headers" in names:
        columns["headers"] = rows.column("headers").cast(_HEADERS)
    return pa.RecordBatch.from_pydict(columns)


def by_topic(rows: pa.RecordBatch, topic: str) -> list[tuple[str, pa.RecordBatch]]:
    """Split rows by their topics, in their order."""
    if topic:
        return [(topic, rows)]
    topics = rows.column("topic").cast(pa.string())
    if topics.null_count:
        raise InvalidRequestError("a row has no topic: set the option topic, or the column")
    names = topics.unique().to_pylist()
    if len(names) == 1:
        return [(names[0], rows)]
    return [(name, rows.filter(pc.equal(topics, name))) for name in names]
