"""The data source `kafscale`: reads topics as tables from the bucket, without a broker.

    kafscale.spark.register(spark)
    spark.read.format("kafscale").option("subscribe", "orders").load("s3://records/production")

The same format writes to topics; see `sink.writers`. The options of reading and writing differ, so
they are parsed when it is known which of them is wanted.

Spark runs this code in several Python processes: one parses the options, another plans, and each
task runs in a third; shared objects are pickled. Invariant: a query returns the right rows whatever
Spark's settings are. Two properties of Spark 4.2 complicate filter pushdown:

* Spark rejects a reader that implements `pushFilters` while its setting for pushdown is off, and
  does not expose the setting to the source. So there are two readers. `FilteringReader` is used
  only in the worker program for pushdown, which Spark starts only if the setting is on.
* The result of pushdown in one query is reused for all queries of the same `load()`, and for all of
  its scans in one query: `frame.filter(...)` and then `frame.count()` would miss records. So
  filters are accepted only if the option `pushFilters` says that the frame is used once.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import cached_property
from typing import ClassVar, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kafscale.errors import InvalidRequestError
from kafscale.observability.logging import get_logger
from kafscale.spark.plan.offset_bounds import (
    SpecificOffsets,
    TimestampSearch,
    format_partitions,
    resolve,
)
from kafscale.spark.plan.offset_map import PartitionOffsets
from kafscale.spark.plan.pushdown import ScanBounds, push_down
from kafscale.spark.plan.task_planner import OffsetRange
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.spark.read.location import Location
from kafscale.spark.sink.security import security_of
from kafscale.spark.sink.writers import BatchWriter, Sink, StreamWriter
from kafscale.spark.source.options import Options, parse
from kafscale.spark.source.query import Query, spark_schema
from kafscale.spark.source.session_defaults import SessionDefaults
from kafscale.spark.source.stream import StreamReader
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

NAME: Final = "kafscale"
_PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class KafscaleSource(DataSource):
    """The implementation of `format("kafscale")`."""

    defaults: ClassVar[SessionDefaults] = SessionDefaults()
    """The S3 settings of the session; `register` sets them."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options)

    @cached_property
    def _options(self) -> Options:
        return parse(self._given)

    @cached_property
    def _location(self) -> Location:
        return self.defaults.resolve_location(self._options.location)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return spark_schema(self._options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        query = Query.of(self._location, self._options, schema)
        pushes_filters = self._options.pushes_filters and _PUSHDOWN_WORKER in sys.modules
        return FilteringReader(query) if pushes_filters else BatchReader(query)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name.
        return StreamReader(Query.of(self._location, self._options, schema))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(self._sink(schema), overwrite=overwrite)

    def streamWriter(  # noqa: N802 - Spark's name.
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002 - Spark's; see `StreamWriter`.
    ) -> StreamWriter:
        return StreamWriter(self._sink(schema))

    def _sink(self, schema: StructType) -> Sink:
        return Sink.of(self._given, security_of(self.defaults.own), schema)


class BatchReader(DataSourceReader):
    """Reads a topic once; one listing of the bucket fixes the start and end offsets."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._query.options.batch_bounds()
        self._bounds = ScanBounds()

    def partitions(self) -> list[InputPartition]:
        query = self._query
        with query.location.open() as store:
            lister = BucketLister(store, query.location.namespace)
            offset_map = query.list_offsets(lister)
            partitions = query.options.subscription.require(offset_map)
            search = query.timestamp_search(store, partitions)
            selected = batch_ranges(query, partitions, search)
            ranges = list(_apply_bounds(selected, self._bounds, search))
            return query.plan(query.load_aborted(lister, offset_map, ranges), ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._query.read(partition)


class FilteringReader(BatchReader):
    """A batch reader with filter pushdown, for a frame that is used once."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name.
        self._bounds, remaining = push_down(filters)
        return remaining


def batch_ranges(
    query: Query, partitions: Mapping[TopicPartition, PartitionOffsets], search: TimestampSearch
) -> list[OffsetRange]:
    """Return the offsets that the options of a batch query select."""
    starting, ending = query.options.batch_bounds()
    starts = resolve(starting, partitions, query.options.starting_side, search)
    ends = resolve(
        ending, partitions, query.options.ending_side, _search_withheld(search, partitions)
    )
    inverted = [
        topic_partition
        for topic_partition in partitions
        if starts[topic_partition] > ends[topic_partition]
    ]
    is_specific = isinstance(starting, SpecificOffsets) and isinstance(ending, SpecificOffsets)
    if inverted and is_specific:
        raise InvalidRequestError(
            f"startingOffsets is greater than endingOffsets for {format_partitions(inverted)}"
        )
    _check_withheld(query.options, partitions, ends)
    return [
        OffsetRange(
            *topic_partition,
            starts[topic_partition],
            max(starts[topic_partition], min(ends[topic_partition], partition.end_offset)),
        )
        for topic_partition, partition in sorted(partitions.items())
    ]


def _search_withheld(
    search: TimestampSearch, partitions: Mapping[TopicPartition, PartitionOffsets]
) -> TimestampSearch:
    """Search for ends: one that is not found may be anywhere in the offsets that are withheld."""

    def find(timestamps_ms: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]:
        return {
            key: partitions[key].high_watermark if offset is None else offset
            for key, offset in search(timestamps_ms).items()
        }

    return find


def _check_withheld(
    options: Options,
    partitions: Mapping[TopicPartition, PartitionOffsets],
    ends: Mapping[TopicPartition, int],
) -> None:
    """Report ends behind open transactions: a next batch that begins there would miss records."""
    withheld = [
        f"offsets {partition.end_offset} to {ends[key] - 1} of {format_partitions([key])}"
        for key, partition in sorted(partitions.items())
        if ends[key] > partition.end_offset
    ]
    if not withheld:
        return
    subject = f"{', '.join(withheld)} are behind a transaction that is still open"
    if options.fail_on_data_loss:
        raise InvalidRequestError(
            f"{subject}: read them when it has ended, set failOnDataLoss=false to end before it, or"
            " isolationLevel=read_uncommitted to read it, too"
        )
    logger.warning("batch ends before an open transaction", reason=subject)


def _apply_bounds(
    ranges: Iterable[OffsetRange], bounds: ScanBounds, search: TimestampSearch
) -> Iterator[OffsetRange]:
    """Restrict ranges to the bounds that filters set."""
    clipped: dict[TopicPartition, tuple[int, int]] = {}
    for range_ in ranges:
        start, end = bounds.clip(range_.start_offset, range_.end_offset)
        if start < end and bounds.includes(range_.topic, range_.partition):
            clipped[range_.topic, range_.partition] = start, end
    firsts: Mapping[TopicPartition, int | None] = {}
    if bounds.since_ms is not None:
        firsts = search(dict.fromkeys(clipped, bounds.since_ms))
    for topic_partition, (start, end) in clipped.items():
        first = firsts.get(topic_partition, start)
        # None means that every record is older than the bound.
        if first is not None and first < end:
            yield OffsetRange(*topic_partition, max(start, first), end, bounds.since_ms)
