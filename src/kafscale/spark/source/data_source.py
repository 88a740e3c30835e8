"""The source `kafscale`: topics as tables, read from where they are kept, without a broker.

    kafscale.spark.register(spark)
    spark.read.format("kafscale").option("subscribe", "orders").load("s3://records/production")

Spark runs this in Python processes of its own: options are read in one, a plan is made in another,
and each task runs in a third; what they share is pickled. The law: a query gives the right rows
whatever Spark's settings are. Two traps of Spark 4.2 lie in the way of filters:

* It refuses a reader that takes filters while its switch for them is off, but does not tell whether
  it is. So there are two readers, and which one is made depends on the process that asks: there is
  a program for plans with filters, which nobody loads without the switch.
* What the filters of one query have left to read is kept for all queries of the same `load()`, and
  for all of its scans in one query: `frame.filter(...)`, then `frame.count()` would miss records.
  So filters are taken only where `pushFilters` says that what was loaded is used once.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import ClassVar, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kafscale.errors import InvalidRequestError
from kafscale.spark.log.bucket_listing import BucketLister
from kafscale.spark.plan.offset_map import PartitionOffsets, TopicPartition
from kafscale.spark.plan.offsets import Named, Search, resolve, show
from kafscale.spark.plan.pushdown import Scope, narrow
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.source.options import parse
from kafscale.spark.source.query import Query, spark_schema
from kafscale.spark.source.session_defaults import SessionDefaults
from kafscale.spark.source.stream import StreamReader

NAME: Final = "kafscale"
_FILTERING_PROGRAM: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class KafscaleSource(DataSource):
    """What `format("kafscale")` makes."""

    defaults: ClassVar[SessionDefaults] = SessionDefaults()
    """What the session says about buckets; `register` fills it in."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = parse(options)
        self._location = self.defaults.resolve_location(self._options.location)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return spark_schema(self._options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        query = Query.of(self._location, self._options, schema)
        is_asked = self._options.pushes_filters and _FILTERING_PROGRAM in sys.modules
        return FilteringReader(query) if is_asked else BatchReader(query)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name.
        return StreamReader(Query.of(self._location, self._options, schema))


class BatchReader(DataSourceReader):
    """Reads once, from a beginning to an end that are settled by one look at the log."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._query.options.batch_bounds()
        self._scope = Scope()

    def partitions(self) -> list[InputPartition]:
        query = self._query
        with query.location.open() as store:
            log = query.list_offsets(BucketLister(store, query.location.namespace))
            partitions = query.options.subscription.require(log)
            search = query.search(store, partitions)
            ranges = ranges_of(query, partitions, search)
            return query.plan(log, list(narrowed(ranges, self._scope, search)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._query.rows(partition)


class FilteringReader(BatchReader):
    """The same, for a Spark that hands its filters over, and a frame that is used once."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name.
        self._scope, left = narrow(filters)
        return left


def ranges_of(
    query: Query, partitions: Mapping[TopicPartition, PartitionOffsets], search: Search
) -> list[OffsetRange]:
    """What the options of a batch ask for."""
    starting, ending = query.options.batch_bounds()
    starts = resolve(starting, partitions, query.options.starting_side, search)
    ends = resolve(ending, partitions, query.options.ending_side, search)
    reversed_places = [place for place in partitions if starts[place] > ends[place]]
    if reversed_places and isinstance(starting, Named) and isinstance(ending, Named):
        raise InvalidRequestError(
            f"startingOffsets lies behind endingOffsets for {show(reversed_places)}"
        )
    return [
        OffsetRange(*place, starts[place], max(starts[place], ends[place]))
        for place in sorted(partitions)
    ]


def narrowed(ranges: Iterable[OffsetRange], scope: Scope, search: Search) -> Iterator[OffsetRange]:
    """The ranges without what filters exclude."""
    left: dict[TopicPartition, tuple[int, int]] = {}
    for one in ranges:
        start, end = scope.clip(one.start_offset, one.end_offset)
        if start < end and scope.has(one.topic, one.partition):
            left[one.topic, one.partition] = start, end
    firsts = search(dict.fromkeys(left, scope.since_ms)) if scope.since_ms is not None else {}
    for place, (start, end) in left.items():
        first = firsts.get(place, start)
        # No record has reached the time, or the first that has says where to begin.
        if first is not None and first < end:
            yield OffsetRange(*place, max(start, first), end, scope.since_ms)
