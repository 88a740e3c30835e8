"""What a query asks for, in the form in which it travels: from the planner to every task.

Here meets what a batch and a stream have in common: the look at the log, the plan, the records of
one task in the columns and in the order that Spark has planned for. The law: no key and no token is
part of its `repr`, as `Location` promises.
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
from kafscale.spark.log.bucket_listing import BucketLister
from kafscale.spark.log.timestamp_lookup import offsets_for_timestamps
from kafscale.spark.plan import task_planner
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets, TopicPartition
from kafscale.spark.plan.offsets import Search
from kafscale.spark.plan.task_planner import OffsetRange, Task
from kafscale.spark.read.task import read_task
from kafscale.spark.source import columns
from kafscale.spark.source.columns import Columns
from kafscale.spark.source.location import Location
from kafscale.spark.source.options import Options
from kafscale.storage.objects.blocking import BlockingObjectStore

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


def spark_schema(wanted: Columns) -> StructType:
    """The columns as Spark knows them."""
    return StructType([StructField(name, _TYPES[name]) for name in wanted.names])


@dataclass(frozen=True)
class Query:
    """Where to look, for what, and which columns to give in which order."""

    location: Location
    options: Options
    names: tuple[str, ...]

    @classmethod
    def of(cls, location: Location, options: Options, schema: StructType) -> "Query":
        """A query for the columns of a schema, ours or one that the user gave."""
        for field in schema.fields:
            if field.name not in _TYPES:
                raise InvalidRequestError(
                    f"no such column: {field.name!r}; there are {', '.join(_TYPES)}"
                )
            if field.dataType != _TYPES[field.name]:
                raise InvalidRequestError(
                    f"column {field.name} is {_TYPES[field.name].simpleString()}, "
                    f"not {field.dataType.simpleString()}"
                )
            if not field.nullable:
                raise InvalidRequestError(f"column {field.name} cannot be NOT NULL here")
        names = tuple(schema.names)
        if not names or len(set(names)) < len(names):
            raise InvalidRequestError(f"a schema has columns, each once, not {', '.join(names)}")
        return cls(location, options, names)

    def list_offsets(self, lister: BucketLister) -> OffsetMap:
        subscription = self.options.subscription
        return lister.list(subscription.topics, subscription.matches)

    def search(
        self, store: BlockingObjectStore, partitions: Mapping[TopicPartition, PartitionOffsets]
    ) -> Search:
        """How to find offsets by their times."""
        return partial(
            offsets_for_timestamps, store, self.location.namespace, partitions=partitions
        )

    def plan(self, log: OffsetMap, ranges: Sequence[OffsetRange]) -> list[InputPartition]:
        tasks = task_planner.plan(
            log,
            ranges,
            task_bytes=self.options.task_bytes,
            min_tasks=self.options.tasks_min,
            max_records=self.options.records_per_task_max,
        )
        return [InputPartition(task) for task in tasks]

    def rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task; none of a plan that is empty, which Spark hands as nothing."""
        task: Task | None = partition.value
        if task is None:
            return
        wanted = columns.parse(",".join(self.names))
        for batch in read_task(
            self.location, task, wanted, fail_on_data_loss=self.options.fail_on_data_loss
        ):
            yield batch if self.names == wanted.names else batch.select(list(self.names))
