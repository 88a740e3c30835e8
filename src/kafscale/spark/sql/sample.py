"""Some records of a topic, from its beginning and from its end, to see what it holds."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import pyarrow as pa

from kafscale.errors import DamagedObjectError
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.plan.task_planner import OffsetRange, plan
from kafscale.spark.read.task import read_task
from kafscale.spark.source.columns import Columns
from kafscale.spark.source.location import Location

RECORDS_MAX: Final = 2000
"""How many are looked at, of all partitions together."""
RECORDS_MIN: Final = 20
"""How many of each end of a partition, however many partitions there are."""
BYTES_MAX: Final = 32 * 1024 * 1024
"""After how many bytes the partitions that are left are not looked at."""

_COLUMNS: Final = Columns(("key", "value"))


def sample(
    location: Location, offset_map: OffsetMap, topic: str
) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Keys and values; none, if the topic is empty."""
    partitions = [found for found in offset_map.partitions.values() if found.topic == topic]
    count = max(RECORDS_MAX // max(2 * len(partitions), 1), RECORDS_MIN)
    batches: list[pa.RecordBatch] = []
    for found in partitions:
        for part in _ends(found, count):
            # What is damaged is told to whoever wants to read it; the rest may be enough here.
            with suppress(DamagedObjectError):
                for task in plan(offset_map, [part]):
                    batches += read_task(location, task, _COLUMNS, fail_on_data_loss=False)
        if sum(batch.nbytes for batch in batches) > BYTES_MAX:
            break
    table = pa.Table.from_batches(batches, _COLUMNS.schema).combine_chunks()
    keys, values = (table.column(name) for name in _COLUMNS.names)
    return _single(keys), _single(values)


def _ends(found: PartitionOffsets, count: int) -> Iterator[OffsetRange]:
    """The first and the last offsets of a partition, none of them twice."""
    start, end = found.start_offset, found.end_offset
    middle = max(start + count, end - count)
    yield OffsetRange(found.topic, found.partition, start, min(start + count, end))
    yield OffsetRange(found.topic, found.partition, min(middle, end), end)


def _single(column: pa.ChunkedArray) -> pa.BinaryArray:
    return column.chunk(0) if column.num_chunks else pa.array([], pa.binary())
