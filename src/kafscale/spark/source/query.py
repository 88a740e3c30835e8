"""A query as it is sent from the driver to every task.

It holds what batches and streams share: listing the bucket, planning, and reading the records of a
task in the columns and the order that Spark planned. Invariant: its `repr` contains no credentials
(see `Location`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafscale.errors import InvalidRequestError
from kafscale.spark.codec import columns
from kafscale.spark.codec.columns import Columns
from kafscale.spark.plan import task_planner
from kafscale.spark.plan.offset_bounds import TimestampSearch
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.plan.task_planner import OffsetRange, Task
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.spark.read.location import Location
from kafscale.spark.read.task import read_task
from kafscale.spark.read.timestamp_lookup import offsets_for_timestamps
from kafscale.spark.source.options import Options
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.text.topic_partition import TopicPartition

_TYPES: Final[Mapping[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(
        StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    ),
}
assert tuple(_TYPES) == columns.NAMES


def spark_schema(columns_: Columns) -> StructType:
    return StructType([StructField(name, _TYPES[name]) for name in columns_.names])


@dataclass(frozen=True)
class Query:
    """A location, the options, and the columns in the order of the result."""

    location: Location
    options: Options
    names: tuple[str, ...]

    @classmethod
    def of(cls, location: Location, options: Options, schema: StructType) -> "Query":
        """Create a query for the columns of a schema, which the user may have given."""
        for field in schema.fields:
            if field.name not in _TYPES:
                raise InvalidRequestError(
                    f"unknown column {field.name!r}; the columns are {', '.join(_TYPES)}"
                )
            if field.dataType != _TYPES[field.name]:
                raise InvalidRequestError(
                    f"column {field.name} has type {_TYPES[field.name].simpleString()}, "
                    f"not {field.dataType.simpleString()}"
                )
            if not field.nullable:
                raise InvalidRequestError(f"column {field.name} cannot be NOT NULL")
        names = tuple(schema.names)
        if not names or len(set(names)) < len(names):
            raise InvalidRequestError(
                f"the schema has no columns, or repeats some: {', '.join(names)}"
            )
        return cls(location, options, names)

    def list_offsets(self, lister: BucketLister) -> OffsetMap:
        subscription = self.options.subscription
        return lister.list(
            subscription.topics, subscription.matches, committed=self.options.is_committed
        )

    def load_aborted(
        self, lister: BucketLister, offset_map: OffsetMap, ranges: Sequence[OffsetRange]
    ) -> OffsetMap:
        """Add the aborted transactions that are to be left out of the ranges."""
        return lister.load_aborted(offset_map, ranges) if self.options.is_committed else offset_map

    def timestamp_search(
        self, store: BlockingObjectStore, partitions: Mapping[TopicPartition, PartitionOffsets]
    ) -> TimestampSearch:
        """Return a function that finds offsets by timestamp."""
        return partial(
            offsets_for_timestamps, store, self.location.namespace, partitions=partitions
        )

    def plan(self, offset_map: OffsetMap, ranges: Sequence[OffsetRange]) -> list[InputPartition]:
        tasks = task_planner.plan(
            offset_map,
            ranges,
            task_bytes=self.options.task_bytes,
            min_tasks=self.options.tasks_min,
            max_records=self.options.records_per_task_max,
        )
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the records of one task; Spark passes None as the only task of an empty plan."""
        task: Task | None = partition.value
        if task is None:
            return
        decoded = columns.parse(",".join(self.names))
        for batch in read_task(
            self.location, task, decoded, fail_on_data_loss=self.options.fail_on_data_loss
        ):
            yield batch if self.names == decoded.names else batch.select(list(self.names))
