"""What a task does: the records of its slices, as Arrow batches that are bounded by bytes.

The law: records come in the order of their offsets, those of the slices and no others. Where they
are, is found by `batches`; what is in them, by `decoder`.
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
    """The records of a task."""
    decoder = Decoder(columns)
    with location.open() as store:
        reader = SliceReader(store, location.namespace, fail_on_data_loss=fail_on_data_loss)
        for part in task.slices:
            for found in reader.read(part):
                yield from decoder.decode_in_parts(
                    found.key,
                    part.topic,
                    part.partition,
                    found.batches,
                    part.start_offset,
                    part.end_offset,
                    from_ms=part.since_ms,
                    is_verified=True,
                )
