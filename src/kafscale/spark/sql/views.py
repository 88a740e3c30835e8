"""Temporary views of topics, and what the plan of a query reads from them.

A view reads the data source under a name of its own, with the location built in: a location may
hold credentials, and Spark shows options in plans.

Spark's Python data sources have no column pruning, and filter pushdown is not safe: in Spark 4.2,
all scans of one `load` share the pushed filters, so that a second scan in the same query would read
too little. The plan that Spark makes without either shows which columns and scans a query needs.
It is read through Java. Spark Connect has no access to it; then every column is read and nothing is
pushed down.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions

from kafscale.spark.codec.columns import ALL_WITH_HEADERS, NAMES
from kafscale.spark.read.location import Location
from kafscale.spark.source.data_source import KafscaleSource
from kafscale.spark.source.query import spark_schema
from kafscale.spark.source.session_defaults import SessionDefaults
from kafscale.spark.sql.columns import COLUMNS, TopicColumns
from kafscale.spark.values.ddl import render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

SOURCE: Final = "kafscale_topics"
_FIELDS: Final = "_fields"
_TYPES: Final = {field.name: field.dataType for field in spark_schema(ALL_WITH_HEADERS)}


@dataclass(frozen=True)
class _FixedLocation(SessionDefaults):
    """Resolves every location to a fixed one."""

    location: Location | None = None

    def resolve_location(self, options: "Mapping[str, str]") -> Location:  # noqa: ARG002
        assert self.location is not None
        return self.location


def register_source(spark: "SparkSession", location: Location) -> None:
    """Register the data source for a location, replacing that of another location."""

    class Source(KafscaleSource):
        defaults = _FixedLocation(location=location)

        @classmethod
        def name(cls) -> str:
            return SOURCE

    spark.dataSource.register(Source)


# --- views ----------------------------------------------------------------------------------------


def topic_view(
    spark: "SparkSession", topic: str, columns: TopicColumns, needed: Collection[str]
) -> "DataFrame":
    """Return a topic with all its columns; those that are not needed are null."""
    read = [name for name in NAMES if name in needed] or ["offset"]
    records = (
        spark.read.format(SOURCE)
        .option("subscribe", topic)
        .option("columns", ",".join(read))
        .option("pushFilters", "true")
        .load()
    )
    common = {name: _column(name, source, columns, needed) for name, source in COLUMNS.items()}
    if not columns.fields.names:
        return records.select(*(column.alias(name) for name, column in common.items()))
    text = functions.col("value").cast("string") if "value" in needed else functions.lit(None)
    # Two steps, so that Spark parses a value once for all of its fields.
    parsed = records.select(
        functions.from_json(text.cast("string"), render(columns.fields)).alias(_FIELDS),
        *(column.alias(name) for name, column in common.items()),
    )
    fields = functions.col(_FIELDS)
    return parsed.select(
        *(fields.getField(name).alias(name) for name in columns.fields.names), *common
    )


def _column(name: str, source: str, columns: TopicColumns, needed: Collection[str]) -> "Column":
    is_text = (name == "_key" and columns.is_key_text) or (
        name == "_value" and columns.is_value_text
    )
    type_ = "string" if is_text else _TYPES[source]
    column = functions.col(source) if source in needed else functions.lit(None)
    return column.cast(type_)


# --- scans of a plan ------------------------------------------------------------------------------


class Scans(NamedTuple):
    """The scans of a query."""

    topics: tuple[str, ...]
    """The topic of every scan."""
    columns: frozenset[str]
    """The columns that the query needs, by their names in the data source."""

    @property
    def are_distinct(self) -> bool:
        """Whether no topic is scanned twice."""
        return len(set(self.topics)) == len(self.topics)


def find_scans(planned: "DataFrame") -> Scans | None:
    """Find the scans in the optimized plan of a query; None if it is not accessible."""
    java = getattr(planned, "_jdf", None)
    if java is None:
        return None
    topics = []
    scanned: dict[int, str] = {}
    needed: set[int] = set()
    for node in _nodes(java.queryExecution().optimizedPlan()):
        if _is_scan(node):
            topics.append(str(node.relation().options().get("subscribe")))
            scanned |= {_expression_id(column): column.name() for column in _items(node.output())}
        else:
            # A view renames all columns of its source, so some node refers to each needed column.
            needed |= {_expression_id(column) for column in _items(node.references().toSeq())}
    columns = frozenset(name for id_, name in scanned.items() if id_ in needed)
    return Scans(tuple(topics), columns)


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield all nodes of a plan, including those of its subqueries."""
    yield plan
    for child in _items(plan.children()):
        yield from _nodes(child)
    for subquery in _items(plan.subqueries()):
        yield from _nodes(subquery)


def _is_scan(node: Any) -> bool:
    is_scan = node.getClass().getSimpleName() == "DataSourceV2ScanRelation"
    return is_scan and str(node.relation().table().name()) == SOURCE


def _expression_id(column: Any) -> int:
    return int(column.exprId().id())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]
