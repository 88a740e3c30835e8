"""Topics as views: a source that knows where they are, and the columns that a view shows of them.

The source is the one of `format("kafscale")` under a name of its own, with the location built in:
a location may hold keys, and options would show them in plans.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions

from kafscale.spark.source.columns import ALL_WITH_HEADERS, NAMES
from kafscale.spark.source.data_source import KafscaleSource
from kafscale.spark.source.location import Location
from kafscale.spark.source.query import spark_schema
from kafscale.spark.source.session_defaults import SessionDefaults
from kafscale.spark.sql.columns import COLUMNS, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

SOURCE: Final = "kafscale_topics"
_FIELDS: Final = "_fields"
_TYPES: Final = {field.name: field.dataType for field in spark_schema(ALL_WITH_HEADERS)}
_SIMPLE: Final = {
    pa.bool_(): "boolean",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
}


@dataclass(frozen=True)
class _Here(SessionDefaults):
    """What says where topics are, whatever the options are."""

    location: Location | None = None

    def resolve_location(self, options: "Mapping[str, str]") -> Location:  # noqa: ARG002 - there are none.
        assert self.location is not None
        return self.location


def register_at(spark: "SparkSession", location: Location) -> None:
    """Make the source known to a session; what reads topics elsewhere is forgotten."""

    class Source(KafscaleSource):
        defaults = _Here(location=location)

        @classmethod
        def name(cls) -> str:
            return SOURCE

    spark.dataSource.register(Source)


def view(spark: "SparkSession", topic: str, shape: Shape, needed: Collection[str]) -> "DataFrame":
    """A topic with all its columns, of which those that are not needed are null."""
    read = [name for name in NAMES if name in needed] or ["offset"]
    records = (
        spark.read.format(SOURCE)
        .option("subscribe", topic)
        .option("columns", ",".join(read))
        .option("pushFilters", "true")
        .load()
    )
    columns = {name: _column(name, source, shape, needed) for name, source in COLUMNS.items()}
    if not shape.fields.names:
        return records.select(*(column.alias(name) for name, column in columns.items()))
    text = functions.col("value").cast("string") if "value" in needed else functions.lit(None)
    # Two steps, so that Spark takes a value apart once for all of its fields.
    parsed = records.select(
        functions.from_json(text.cast("string"), ddl(shape.fields)).alias(_FIELDS),
        *(column.alias(name) for name, column in columns.items()),
    )
    fields = functions.col(_FIELDS)
    return parsed.select(
        *(fields.getField(name).alias(name) for name in shape.fields.names), *columns
    )


def _column(name: str, source: str, shape: Shape, needed: Collection[str]) -> "Column":
    is_text = (name == "_key" and shape.is_key_text) or (name == "_value" and shape.is_value_text)
    kind = "string" if is_text else _TYPES[source]
    column = functions.col(source) if source in needed else functions.lit(None)
    return column.cast(kind)


def ddl(fields: pa.Schema) -> str:
    """The fields of JSON objects as Spark writes types.

    >>> ddl(pa.schema([("id", pa.int64()), ("a b", pa.list_(pa.struct([("c", pa.string())])))]))
    '`id` bigint, `a b` array<struct<`c`: string>>'
    """
    return ", ".join(f"{_quoted(field.name)} {_type(field.type)}" for field in fields)


def _type(type_: pa.DataType) -> str:
    if pa.types.is_list(type_):
        return f"array<{_type(type_.value_type)}>"
    if pa.types.is_struct(type_):
        inside = ", ".join(f"{_quoted(field.name)}: {_type(field.type)}" for field in type_)
        return f"struct<{inside}>"
    return _SIMPLE[type_]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
