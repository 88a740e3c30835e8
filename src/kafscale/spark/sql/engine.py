"""Topics as tables: statements of SQL over the log, as it is when each of them is run.

    topics = Sql(spark, Location.parse("s3://records/production"))
    result = topics.run("select status, count(*) from orders group by status")

A topic becomes a view when a statement names it: Spark says which name it does not know, some
records of that topic show which columns it has (`sql_columns`), and the statement is tried again.
When it is planned, the views are gone. The laws:

* Every statement sees the log as it is then.
* Columns that a query does not need are not read (`sql_plan`).
* Conditions on `_offset`, `_partition` and `_timestamp` reach the source, which reads only segments
  that can hold such records; unless a topic is read twice in one statement, which Spark's sources
  cannot be trusted with.
* What is wrong with a statement is raised as a `QueryError`, in a sentence.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.errors import PySparkException

from kafscale.spark.log.bucket_listing import BucketLister
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.source.location import Location
from kafscale.spark.source.registration import PUSHDOWN_SETTING
from kafscale.spark.sql import columns, errors, statements
from kafscale.spark.sql.columns import COLUMNS, Shape
from kafscale.spark.sql.errors import QueryError
from kafscale.spark.sql.plan import reads_of
from kafscale.spark.sql.sample import sample
from kafscale.spark.sql.views import SOURCE, register_at, view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPICS_MAX: Final = 32
"""How many topics one statement may name."""

_ALL: Final = frozenset(COLUMNS.values())


class Result(NamedTuple):
    """What a statement gives: no columns, if it is one that only does something."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


class Sql:
    """A session, and the topics of one location in it."""

    def __init__(self, spark: "SparkSession", location: Location) -> None:
        errors.silence()
        register_at(spark, location)
        self._spark = spark
        self._location = location
        self._shapes: dict[str, Shape] = {}

    def run(self, statement: str, limit: int | None = None) -> Result:
        """What a statement gives; its first rows, if there is a limit."""
        pattern = statements.shown_topics(statement)
        if pattern is not None:
            return self._show(pattern, limit)
        with _in_sentences():
            found = self.query(statement, limit)
            if not found.columns:
                return Result((), ())
            return Result(tuple(found.columns), _rows(found))

    def query(self, statement: str, limit: int | None = None) -> "DataFrame":
        """A statement as Spark has planned it; to be used once."""
        named: list[str] = []
        try:
            with self._pushing_filters(False):
                planned = self._plan(statement, named)
                reads = reads_of(planned, SOURCE) if named else None
                if reads is None or not reads.topics:
                    return planned if limit is None else planned.limit(limit)
            for topic in named:
                self._add_view(topic, reads.columns)
            with self._pushing_filters(reads.are_distinct):
                found = self._spark.sql(statement)
                found = found if limit is None else found.limit(limit)
                # Now, while the switch is as it has to be; it is looked at no more then.
                found._jdf.queryExecution().executedPlan()  # noqa: SLF001 - there is no other way.
            return found
        finally:
            for topic in named:
                self._spark.catalog.dropTempView(topic)

    def _plan(self, statement: str, named: list[str]) -> "DataFrame":
        """The statement over views of all topics that it names, which are told."""
        offset_map: OffsetMap | None = None
        while True:
            try:
                return self._spark.sql(statement)
            except PySparkException as error:
                parts = errors.missing_name(error)
                if parts is None or len(named) == TOPICS_MAX:
                    raise
            offset_map = offset_map or self._look()
            topic = _topic(parts, offset_map.topics, named)
            if topic not in self._shapes:
                keys, values = sample(self._location, offset_map, topic)
                shape = columns.shape(keys, values)
                if len(values):  # An empty topic may show something else later on.
                    self._shapes[topic] = shape
            named.append(topic)
            self._add_view(topic, _ALL)

    def _add_view(self, topic: str, needed: Collection[str]) -> None:
        shape = self._shapes.get(topic, columns.EMPTY)
        view(self._spark, topic, shape, needed).createOrReplaceTempView(f"`{topic}`")

    def _show(self, pattern: str, limit: int | None) -> Result:
        offset_map = self._look()
        rows = []
        for topic in offset_map.topics:
            if statements.matches(pattern, topic):
                held = [found for found in offset_map.partitions.values() if found.topic == topic]
                offsets = sum(found.end_offset - found.start_offset for found in held)
                size_bytes = sum(extent.length for found in held for extent in found.extents)
                rows.append((topic, len(held), offsets, size_bytes))
        return Result(("topic", "partitions", "records", "bytes"), rows[:limit])

    def _look(self) -> OffsetMap:
        with self._location.open() as store:
            return BucketLister(store, self._location.namespace).list()

    @contextmanager
    def _pushing_filters(self, wanted: bool) -> Iterator[None]:
        before = self._spark.conf.get(PUSHDOWN_SETTING, None)
        self._spark.conf.set(PUSHDOWN_SETTING, wanted)
        try:
            yield
        finally:
            if before is None:
                self._spark.conf.unset(PUSHDOWN_SETTING)
            else:
                self._spark.conf.set(PUSHDOWN_SETTING, before)


def _topic(parts: Sequence[str], topics: Sequence[str], named: Collection[str]) -> str:
    """The topic that a name means which Spark does not know."""
    name = ".".join(parts)
    alike = [topic for topic in topics if topic.lower() == name.lower()]
    chosen = name if name in alike else (alike or [""])[0]
    if not chosen:
        near = get_close_matches(name, topics, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}?" if near else "`show tables` lists all"
        raise QueryError(f"there is no topic {name}; {hint}")
    if len(parts) > 1:
        raise QueryError(f"the name of topic {chosen} has dots in it: write `{chosen}`")
    if chosen.lower() in {topic.lower() for topic in named}:
        # Spark has the view and does not see it: whatever is asked for, it is no table.
        raise QueryError(f"{chosen} is a topic: it can be read, and nothing else")
    return chosen


@contextmanager
def _in_sentences() -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        raise QueryError(errors.sentence(error)) from error


def _rows(found: "DataFrame") -> Sequence[Sequence[Any]]:
    """All rows; by way of Arrow, which knows in which zone a time is."""
    try:
        table = found.toArrow()
    except PySparkException as error:
        if error.getCondition() != "UNSUPPORTED_DATA_TYPE_FOR_ARROW_CONVERSION":
            raise
        return found.collect()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
