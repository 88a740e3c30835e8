"""Reads the slices of a task as Arrow batches of bounded size.

Invariant: exactly the records of the slices are returned, in the order of their offsets.
`slice_reader` finds the batches, and `codec.decoder` decodes them.
"""

from collections.abc import Iterator

import pyarrow as pa

from kafscale.spark.codec.decoder import Decoder
from kafscale.spark.plan.task_planner import Task
from kafscale.spark.read.slice_reader import SliceReader
from kafscale.spark.source.columns import Columns
from kafscale.spark.source.location import Location


def read_task(
    location: Location, task: Task, columns: Columns, *, fail_on_data_loss: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task."""
    decoder = Decoder(columns)
    with location.open() as store:
        reader = SliceReader(store, location.namespace, fail_on_data_loss=fail_on_data_loss)
        for part in task.slices:
            for group in reader.read(part):
                yield from decoder.decode_in_parts(
                    group.key,
                    part.topic,
                    part.partition,
                    group.batches,
                    part.start_offset,
                    part.end_offset,
                    from_ms=part.since_ms,
                    is_verified=True,
                )
