"""Runs SQL statements over topics.

    engine = SqlEngine(spark, Location.parse("s3://records/production"))
    result = engine.run("select status, count(*) from orders group by status")

A topic becomes a temporary view when a statement names it: Spark reports the unknown table, a
sample of the topic shows its columns (`columns`), and the statement is planned again. The views are
dropped after planning. Invariants:

* Every statement sees the log at the time it runs.
* Columns that a query does not need are not read (`views.find_scans`).
* Filters on `_offset`, `_partition` and `_timestamp` are pushed down, so that only segments with
  such records are read; except if a statement reads a topic twice, where pushdown is not safe.
* Errors of a statement are raised as `QueryError`, in one sentence.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.errors import PySparkException

from kafscale.errors import KafscaleError
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.spark.read.location import Location
from kafscale.spark.runtime.errors import error_message, missing_table, silence_query_logger
from kafscale.spark.source.registration import PUSHDOWN_SETTING
from kafscale.spark.sql import columns, statements
from kafscale.spark.sql.columns import COLUMNS, TopicColumns
from kafscale.spark.sql.views import find_scans, register_source, topic_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPICS_MAX: Final = 32
"""The number of topics that one statement may name."""

_ALL: Final = frozenset(COLUMNS.values())


class QueryError(KafscaleError):
    """A statement is invalid or failed."""


class Result(NamedTuple):
    """The result of a statement; a statement without a result has no columns."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


class SqlEngine:
    """Runs statements over the topics of one location."""

    def __init__(self, spark: "SparkSession", location: Location) -> None:
        silence_query_logger()
        register_source(spark, location)
        self._spark = spark
        self._location = location
        self._columns: dict[str, TopicColumns] = {}

    def run(self, statement: str, limit: int | None = None) -> Result:
        """Run a statement; return all rows, or the first `limit`."""
        pattern = statements.shown_topics(statement)
        if pattern is not None:
            return self._show_topics(pattern, limit)
        with _query_errors():
            frame = self.query(statement, limit)
            if not frame.columns:
                return Result((), ())
            return Result(tuple(frame.columns), _rows(frame))

    def query(self, statement: str, limit: int | None = None) -> "DataFrame":
        """Plan a statement; the frame may be used once."""
        named: list[str] = []
        try:
            with self._pushdown(False):
                planned = self._plan(statement, named)
                scans = find_scans(planned) if named else None
                if scans is None or not scans.topics:
                    return planned if limit is None else planned.limit(limit)
            for topic in named:
                self._add_view(topic, scans.columns)
            with self._pushdown(scans.are_distinct):
                frame = self._spark.sql(statement)
                frame = frame if limit is None else frame.limit(limit)
                # Plan now, while the pushdown setting holds.
                frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - there is no other way.
            return frame
        finally:
            for topic in named:
                self._spark.catalog.dropTempView(topic)

    def _plan(self, statement: str, named: list[str]) -> "DataFrame":
        """Plan a statement over views of the topics that it names, which are added to `named`."""
        offset_map: OffsetMap | None = None
        while True:
            try:
                return self._spark.sql(statement)
            except PySparkException as error:
                parts = missing_table(error)
                if parts is None or len(named) == TOPICS_MAX:
                    raise
            offset_map = offset_map or self._list()
            topic = _resolve_topic(parts, offset_map.topics, named)
            if topic not in self._columns:
                committed = self._list([topic], committed=True)
                keys, values = columns.sample(self._location, committed, topic)
                inferred = columns.infer_columns(keys, values)
                if len(values):  # The columns of an empty topic may change.
                    self._columns[topic] = inferred
            named.append(topic)
            self._add_view(topic, _ALL)

    def _add_view(self, topic: str, needed: Collection[str]) -> None:
        topic_columns = self._columns.get(topic, columns.EMPTY)
        view = topic_view(self._spark, topic, topic_columns, needed)
        view.createOrReplaceTempView(f"`{topic}`")

    def _show_topics(self, pattern: str, limit: int | None) -> Result:
        offset_map = self._list()
        rows = []
        for topic in offset_map.topics:
            if statements.matches(pattern, topic):
                partitions = [
                    each for each in offset_map.partitions.values() if each.topic == topic
                ]
                offsets = sum(each.end_offset - each.start_offset for each in partitions)
                size_bytes = sum(extent.length for each in partitions for extent in each.extents)
                rows.append((topic, len(partitions), offsets, size_bytes))
        return Result(("topic", "partitions", "offsets", "bytes"), rows[:limit])

    def _list(self, topics: Collection[str] | None = None, *, committed: bool = False) -> OffsetMap:
        """List topics; all of them without transactions, whose damage concerns only their own."""
        with self._location.open() as store:
            lister = BucketLister(store, self._location.namespace)
            return lister.list(topics, committed=committed)

    @contextmanager
    def _pushdown(self, enabled: bool) -> Iterator[None]:
        before = self._spark.conf.get(PUSHDOWN_SETTING, None)
        self._spark.conf.set(PUSHDOWN_SETTING, enabled)
        try:
            yield
        finally:
            if before is None:
                self._spark.conf.unset(PUSHDOWN_SETTING)
            else:
                self._spark.conf.set(PUSHDOWN_SETTING, before)


def _resolve_topic(parts: Sequence[str], topics: Sequence[str], named: Collection[str]) -> str:
    """Return the topic for a table name that Spark does not know."""
    name = ".".join(parts)
    matching = [topic for topic in topics if topic.lower() == name.lower()]
    chosen = name if name in matching else (matching or [""])[0]
    if not chosen:
        near = get_close_matches(name, topics, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}?" if near else "`show tables` lists all topics"
        raise QueryError(f"there is no topic {name}; {hint}")
    if len(parts) > 1:
        raise QueryError(f"the topic name {chosen} contains dots: write `{chosen}`")
    if chosen.lower() in {topic.lower() for topic in named}:
        # Spark has the view but does not find it: the statement needs a real table.
        raise QueryError(f"{chosen} is a topic, which can only be read")
    return chosen


@contextmanager
def _query_errors() -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        raise QueryError(error_message(error)) from error


def _rows(frame: "DataFrame") -> Sequence[Sequence[Any]]:
    """Collect all rows, through Arrow if possible, which keeps the time zone."""
    try:
        table = frame.toArrow()
    except PySparkException as error:
        if error.getCondition() != "UNSUPPORTED_DATA_TYPE_FOR_ARROW_CONVERSION":
            raise
        return frame.collect()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
