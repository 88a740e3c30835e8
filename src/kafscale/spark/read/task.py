"""Reads the records of one Spark task as Arrow batches."""

from collections.abc import Iterator

import pyarrow as pa

from kafscale.spark.codec.aborted_batches import AbortedBatches
from kafscale.spark.codec.columns import Columns
from kafscale.spark.plan.task_planner import Task
from kafscale.spark.read.location import Location
from kafscale.spark.read.slice_reader import SliceReader


def read_task(
    location: Location, task: Task, columns: Columns, *, fail_on_data_loss: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a task."""
    from kafscale.spark.codec.decoder import Decoder  # noqa: PLC0415 - planners do not load numba.

    decoder = Decoder(columns)
    with location.open() as store:
        reader = SliceReader(store, location.namespace, fail_on_data_loss=fail_on_data_loss)
        for part in task.slices:
            aborted = AbortedBatches(part.aborted)
            for group in reader.read(part):
                yield from decoder.decode_in_parts(
                    group.key,
                    part.topic,
                    part.partition,
                    group.batches,
                    part.start_offset,
                    part.end_offset,
                    since_ms=part.since_ms,
                    aborted=aborted,
                    is_verified=True,
                )
