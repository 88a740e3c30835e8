"""Scans batches for the positions of keys and values and the offsets of records.

This is the first half of decoding, without building columns: jobs that hash keys and copy records
need neither keys nor values as Arrow arrays. As in the decoder, every batch is verified, and damage
raises `DamagedObjectError` with the key of the object.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import BatchView, Codec, inflate, iterate
from kafscale.records.record import RECORD_BYTES_MIN
from kafscale.spark.codec import decoder_arrays, decoder_kernel
from kafscale.spark.codec.aborted_batches import NONE_ABORTED, AbortedBatches
from kafscale.spark.codec.columns import Columns
from kafscale.spark.codec.decoder_input import join_payloads, kernel_batches, select
from kafscale.spark.codec.decoder_kernel import BATCH, INT64_MAX, NULL, Table

CHUNK_BYTES: Final = 8 * 1024 * 1024
"""About how many bytes of records are scanned together."""

INFLATION: Final = 8
"""The assumed ratio of decompressed to compressed size."""

_COLUMNS: Final = Columns(("key", "value", "offset"))


class RecordScan(NamedTuple):
    """Batches and their records, without control batches, which have no keys, and aborted ones."""

    batches: Sequence[BatchView]
    source: NDArray[np.uint8]
    """All records, decompressed."""
    entries: NDArray[np.void]
    """One row of type `decoder_kernel.BATCH` for each batch."""
    table: Table
    bounds: NDArray[np.int64]
    """The row of the first record of each batch, followed by the number of rows."""

    @property
    def row_count(self) -> int:
        return int(self.bounds[-1])

    @property
    def offsets(self) -> NDArray[np.int64]:
        return self.table.offsets[: self.row_count]

    @property
    def has_key(self) -> NDArray[np.bool_]:
        return np.not_equal(self.table.keys.positions[: self.row_count], NULL)

    @property
    def has_value(self) -> NDArray[np.bool_]:
        return np.not_equal(self.table.values.positions[: self.row_count], NULL)

    def count_per_batch(self, rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count the selected rows of each batch."""
        counted = np.concatenate(([0], np.cumsum(rows)))
        return counted[self.bounds[1:]] - counted[self.bounds[:-1]]

    def repeat_per_row(self, values: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Repeat the value of each batch for each of its rows."""
        return np.repeat(values, np.diff(self.bounds))


def chunk_batches(batches: Sequence[BatchView]) -> Iterator[list[BatchView]]:
    """Split batches into chunks of about `CHUNK_BYTES` decompressed bytes."""
    chunk: list[BatchView] = []
    chunk_bytes = 0
    for batch in batches:
        weight = len(batch) * (1 if batch.codec is Codec.NONE else INFLATION)
        if chunk and chunk_bytes + weight > CHUNK_BYTES:
            yield chunk
            chunk, chunk_bytes = [], 0
        chunk.append(batch)
        chunk_bytes += weight
    if chunk:
        yield chunk


def scan(
    key: str, batches: Sequence[BatchView], aborted: AbortedBatches = NONE_ABORTED
) -> RecordScan:
    """Scan all records of batches that were read from the object `key`."""
    assert batches
    chosen = select(key, batches, 0, INT64_MAX, None, aborted=aborted)
    if not chosen.batches:
        none = np.empty(0, np.uint8)
        nothing = decoder_arrays.allocate(_COLUMNS, 0)
        return RecordScan((), none, np.empty(0, BATCH), nothing, np.zeros(1, np.int64))
    try:
        payloads = [decompressed_payload(batch) for batch in chosen.batches]
    except RecordsError as error:
        raise DamagedObjectError(key, str(error)) from error
    source, positions = join_payloads(payloads)
    entries = kernel_batches(chosen.headers, payloads, positions)
    counts = entries["record_count"]
    sizes = np.array([len(payload) for payload in payloads], np.int64)
    for index in np.flatnonzero((counts < 0) | (counts > sizes // RECORD_BYTES_MIN)).tolist():
        raise DamagedObjectError(key, _reason(chosen.batches[index]))
    table = decoder_arrays.allocate(_COLUMNS, int(counts.sum()))
    count = decoder_kernel.scan(source, entries, 0, INT64_MAX, table)
    if count < 0:
        raise DamagedObjectError(key, _reason(chosen.batches[-1 - count]))
    bounds = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return RecordScan(chosen.batches, source, entries, table, bounds)


def decompressed_payload(batch: BatchView) -> memoryview:
    """Return the decompressed records of a batch, without a copy if it is not compressed."""
    return batch.payload if batch.codec is Codec.NONE else memoryview(inflate(batch))


def _reason(batch: BatchView) -> str:
    """Say what is wrong with a batch that the kernel rejected; the kernel gives no reason."""
    try:
        for _ in iterate(batch):
            pass
    except RecordsError as error:
        return str(error)
    return f"the records of {batch!r} cannot be decoded"
