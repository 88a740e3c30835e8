"""What a task does: the records of its slices, as Arrow batches that are bounded by bytes.

The laws: records come in the order of their offsets, those of the slice and no others. A batch of
Arrow is made of a stretch of one object at a time, small enough that it fits several times into a
worker's memory even where records are compressed tightly.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from kafscale.records import BatchView, Codec
from kafscale.records.compression import CODEC_MASK
from kafscale.spark.batches import SliceReader
from kafscale.spark.columns import Columns
from kafscale.spark.decoder import Decoder
from kafscale.spark.location import Location
from kafscale.spark.planner import Task

CHUNK_BYTES: Final = 8 * 1024 * 1024
"""How many bytes of records are decoded at once."""

INFLATION: Final = 8
"""What compressed records are reckoned to become, to keep within the bound."""


def read(
    location: Location, task: Task, columns: Columns, *, fail_on_data_loss: bool = True
) -> Iterator[pa.RecordBatch]:
    """The records of a task."""
    decoder = Decoder(columns)
    with location.open() as store:
        reader = SliceReader(store, location.namespace, fail_on_data_loss=fail_on_data_loss)
        for part in task.slices:
            for found in reader.read(part):
                for batches in chunks(found.batches):
                    decoded = decoder.decode(
                        found.key, part.topic, part.partition, batches,
                        part.start_offset, part.end_offset, from_ms=part.since_ms,
                    )  # fmt: skip
                    if decoded.num_rows:
                        yield decoded


def chunks(batches: Sequence[BatchView]) -> Iterator[list[BatchView]]:
    """The batches, so many at a time as are decoded at once."""
    waiting: list[BatchView] = []
    size_bytes = 0
    for batch in batches:
        is_plain = batch.attributes & CODEC_MASK == Codec.NONE
        weight = len(batch) if is_plain else len(batch) * INFLATION
        if waiting and size_bytes + weight > CHUNK_BYTES:
            yield waiting
            waiting, size_bytes = [], 0
        waiting.append(batch)
        size_bytes += weight
    if waiting:
        yield waiting
