"""Batches whose records have been found: where keys and values lie, and which offsets they have.

What the decoder does first, without the columns that it makes of it: jobs that look at keys and
copy records need neither keys nor values gathered. The laws are the decoder's: every batch is
verified, and what is wrong raises `DamagedObjectError` with the name of the object.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import BatchView, Codec, inflate, iterate
from kafscale.records.record import RECORD_BYTES_MIN
from kafscale.spark.codec import decoder_arrays, decoder_kernel
from kafscale.spark.codec.decoder_batches import choose, entries, lay_out
from kafscale.spark.codec.decoder_kernel import BATCH, INT64_MAX, NULL, Table
from kafscale.spark.source.columns import Columns

CHUNK_BYTES: Final = 8 * 1024 * 1024
"""How many bytes of records are looked at together, roughly."""

INFLATION: Final = 8
"""What compressed records are reckoned to become."""

_COLUMNS: Final = Columns(("key", "value", "offset"))


class Scanned(NamedTuple):
    """Batches and their records; control batches are left out, as they have no keys."""

    batches: Sequence[BatchView]
    source: NDArray[np.uint8]
    """Where all records lie, decompressed."""
    entries: NDArray[np.void]
    """What `decoder_kernel.BATCH` says of each batch."""
    table: Table
    bounds: NDArray[np.int64]
    """The row of the first record of each batch, and how many rows there are."""

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

    def per_batch(self, rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many of some rows each batch has."""
        counted = np.concatenate(([0], np.cumsum(rows)))
        return counted[self.bounds[1:]] - counted[self.bounds[:-1]]

    def per_row(self, values: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """What is said of batches, said of each of their rows."""
        return np.repeat(values, np.diff(self.bounds))


def chunks(batches: Sequence[BatchView]) -> Iterator[list[BatchView]]:
    """The batches, so many at a time as are looked at together."""
    waiting: list[BatchView] = []
    waiting_bytes = 0
    for batch in batches:
        weight = len(batch) * (1 if batch.codec is Codec.NONE else INFLATION)
        if waiting and waiting_bytes + weight > CHUNK_BYTES:
            yield waiting
            waiting, waiting_bytes = [], 0
        waiting.append(batch)
        waiting_bytes += weight
    if waiting:
        yield waiting


def scan(key: str, batches: Sequence[BatchView]) -> Scanned:
    """Find all records of batches that are of the object `key`."""
    assert batches
    chosen = choose(key, batches, 0, INT64_MAX, None)
    if not chosen.batches:
        none = np.empty(0, np.uint8)
        nothing = decoder_arrays.table(_COLUMNS, 0)
        return Scanned((), none, np.empty(0, BATCH), nothing, np.zeros(1, np.int64))
    try:
        payloads = [payload_of(batch) for batch in chosen.batches]
    except RecordsError as error:
        raise DamagedObjectError(key, str(error)) from error
    source, positions = lay_out(payloads)
    found = entries(chosen.headers, payloads, positions)
    counts = found["record_count"]
    sizes = np.array([len(payload) for payload in payloads], np.int64)
    for index in np.flatnonzero((counts < 0) | (counts > sizes // RECORD_BYTES_MIN)).tolist():
        raise DamagedObjectError(key, _reason(chosen.batches[index]))
    table = decoder_arrays.table(_COLUMNS, int(counts.sum()))
    count = decoder_kernel.scan(source, found, 0, INT64_MAX, table)
    if count < 0:
        raise DamagedObjectError(key, _reason(chosen.batches[-1 - count]))
    bounds = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return Scanned(chosen.batches, source, found, table, bounds)


def payload_of(batch: BatchView) -> memoryview:
    """The records of a batch, decompressed; not copied where they are not compressed."""
    return batch.payload if batch.codec is Codec.NONE else memoryview(inflate(batch))


def _reason(batch: BatchView) -> str:
    """What is wrong with a batch that the kernel refused; that only says that it did."""
    try:
        for _ in iterate(batch):
            pass
    except RecordsError as error:
        return str(error)
    return f"the records of {batch!r} cannot be decoded"
