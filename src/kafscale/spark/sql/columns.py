"""Infers the columns of a topic from a sample of its records.

If the values are JSON objects, their fields are columns; a value that does not fit the type of its
field is null. Every record also has the columns `_key`, `_value`, `_topic`, `_partition`,
`_offset`, `_timestamp` and `_headers`. Keys and values are text if all sampled ones are, else
bytes. Invariants: a record that is not JSON is still a row, with null fields; a field with the name
of another column, ignoring case, has no column and is found in `_value` only.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kafscale.errors import DamagedObjectError
from kafscale.spark.codec.columns import Columns
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.plan.task_planner import OffsetRange, Task, plan
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.spark.read.location import Location
from kafscale.spark.read.task import read_task
from kafscale.spark.values.json_inference import infer

COLUMNS: Final = {
    "_key": "key",
    "_value": "value",
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
    "_headers": "headers",
}
"""The columns of every record, and their names in the data source."""

JSON_SHARE_MIN: Final = 0.9
"""The share of values that must be JSON objects; a few may be malformed or in an older format."""

SAMPLE_RECORDS_MAX: Final = 2000
"""The size of a sample, of all partitions together."""
SAMPLE_RECORDS_MIN: Final = 20
"""The minimum number of records from each end of a partition."""
SAMPLE_BYTES_MAX: Final = 32 * 1024 * 1024
"""After this size, the remaining partitions are not sampled."""

_SAMPLED: Final = Columns(("key", "value"))


class TopicColumns(msgspec.Struct, frozen=True):
    fields: pa.Schema
    """The fields of JSON objects; empty if the values are not JSON."""
    is_key_text: bool
    is_value_text: bool


EMPTY: Final = TopicColumns(pa.schema([]), is_key_text=True, is_value_text=True)
"""The columns of a topic without records."""


# --- sample ---------------------------------------------------------------------------------------


def sample(
    location: Location, offset_map: OffsetMap, topic: str
) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Read keys and values from both ends of each partition of a topic."""
    partitions = [each for each in offset_map.partitions.values() if each.topic == topic]
    count = max(SAMPLE_RECORDS_MAX // max(2 * len(partitions), 1), SAMPLE_RECORDS_MIN)
    batches: list[pa.RecordBatch] = []
    for partition in partitions:
        for range_ in _both_ends(partition, count):
            # The query itself reports damaged objects; the other records may be enough here.
            with suppress(DamagedObjectError):
                for task in _plan(location, offset_map, range_):
                    batches += read_task(location, task, _SAMPLED, fail_on_data_loss=False)
        if sum(batch.nbytes for batch in batches) > SAMPLE_BYTES_MAX:
            break
    table = pa.Table.from_batches(batches, _SAMPLED.schema).combine_chunks()
    keys, values = (table.column(name) for name in _SAMPLED.names)
    return _single_chunk(keys), _single_chunk(values)


def _plan(location: Location, offset_map: OffsetMap, range_: OffsetRange) -> list[Task]:
    if offset_map.partitions[range_.topic, range_.partition].has_transactions:
        with location.open() as store:
            lister = BucketLister(store, location.namespace)
            offset_map = lister.load_aborted(offset_map, [range_])
    return plan(offset_map, [range_])


def _both_ends(partition: PartitionOffsets, count: int) -> Iterator[OffsetRange]:
    """Yield the first and the last offsets of a partition, without overlap."""
    start, end = partition.start_offset, partition.end_offset
    middle = max(start + count, end - count)
    yield OffsetRange(partition.topic, partition.partition, start, min(start + count, end))
    yield OffsetRange(partition.topic, partition.partition, min(middle, end), end)


def _single_chunk(column: pa.ChunkedArray) -> pa.BinaryArray:
    return column.chunk(0) if column.num_chunks else pa.array([], pa.binary())


# --- inference ------------------------------------------------------------------------------------


def infer_columns(keys: pa.BinaryArray, values: pa.BinaryArray) -> TopicColumns:
    """Infer the columns of a topic from sampled records."""
    is_value_text = _is_text(values)
    is_json = is_value_text and _json_share(values) >= JSON_SHARE_MIN
    fields = _distinct(infer(values)) if is_json else pa.schema([])
    return TopicColumns(fields, is_key_text=_is_text(keys), is_value_text=is_value_text)


def _is_text(column: pa.BinaryArray) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _json_share(values: pa.BinaryArray) -> float:
    """Return the share of JSON objects among the values that are not null."""
    present = values.drop_null()
    if len(present) == 0:
        return 0.0
    # A cheap test first: most other values do not begin and end like an object.
    is_braced = pc.match_substring_regex(present.cast(pa.string()), r"^\s*\{(?s:.*)\}\s*$")
    candidates = present.filter(is_braced)
    return sum(map(_is_object, candidates.to_pylist())) / len(present)


def _is_object(value: bytes) -> bool:
    try:
        msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _distinct(fields: pa.Schema) -> pa.Schema:
    used = {"", *COLUMNS}
    distinct = []
    for field in fields:
        if field.name.lower() not in used:
            used.add(field.name.lower())
            distinct.append(field)
    return pa.schema(distinct)
