"""Decodes record batches into Arrow batches, in compiled code.

Invariants: the checksum of every batch is verified, here or by the caller; also of a skipped batch,
because the fields by which it is skipped are covered by the checksum. A batch is decoded whole or
not at all. Errors raise `DamagedObjectError` with the key of the object, exactly where
`tests/doubles/reference_decoder.py` does.

No Python code runs per record, and little per batch: payloads are put into one source array,
without a copy if they are uncompressed and share a buffer, and one call of the kernel scans the
records of all batches. The caller chooses the batches and checks that they are contiguous.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from kafscale.errors import BatchTooLargeError, DamagedObjectError, RecordsError
from kafscale.records import (
    DECOMPRESSED_BYTES_MAX,
    BatchView,
    Header,
    Record,
    build,
    inflate,
    iterate,
)
from kafscale.records.record import RECORD_BYTES_MIN
from kafscale.spark.codec import decoder_arrays as arrays
from kafscale.spark.codec import decoder_kernel as kernel
from kafscale.spark.codec.aborted_batches import NONE_ABORTED, AbortedBatches
from kafscale.spark.codec.columns import ALL_WITH_HEADERS, Columns
from kafscale.spark.codec.decoder_input import (
    SelectedBatches,
    join_payloads,
    kernel_batches,
    select,
)

PART_BYTES: Final = 4 * 1024 * 1024
"""The default size of the records of an Arrow batch."""
PAYLOAD_BYTES_MAX: Final = 2**31 - 1
"""The limit for the records of one Arrow batch, which has 32-bit offsets."""


class _Selection(NamedTuple):
    """The selected records and their object."""

    key: str
    topic: str
    partition: int
    start_offset: int
    end_offset: int


class Decoder:
    """Decodes batches of any partition into the selected columns."""

    __slots__ = ("_columns", "_decompressed_bytes_max", "_schema")

    def __init__(
        self, columns: Columns, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    ) -> None:
        """`decompressed_bytes_max` limits the decompressed records of a single batch."""
        self._columns = columns
        self._schema = columns.schema
        self._decompressed_bytes_max = decompressed_bytes_max

    def decode(  # noqa: PLR0917 - an object, a partition, a range.
        self,
        key: str,
        topic: str,
        partition: int,
        batches: Sequence[BatchView],
        start_offset: int,
        end_offset: int,
        *,
        since_ms: int | None = None,
    ) -> pa.RecordBatch:
        """Decode the records from `start_offset` to before `end_offset`, in order.

        Control batches are skipped, and so are whole batches whose maximum timestamp is before
        `since_ms`; the caller filters exactly. `key` is the object that holds the batches.
        """
        selection = _Selection(key, topic, partition, start_offset, end_offset)
        selected = select(key, batches, start_offset, end_offset, since_ms)
        return self._decode(selection, selected, list(self._payloads(key, selected)))

    def decode_in_parts(  # noqa: PLR0917 - as above.
        self,
        key: str,
        topic: str,
        partition: int,
        batches: Sequence[BatchView],
        start_offset: int,
        end_offset: int,
        *,
        since_ms: int | None = None,
        aborted: AbortedBatches = NONE_ABORTED,
        part_bytes: int = PART_BYTES,
        is_verified: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Decode into several Arrow batches, none of which is empty; skip aborted batches.

        An Arrow batch ends as soon as it holds `part_bytes` of decompressed records, so its memory
        is bounded by that and one record batch. Checksums are not compared again if
        `is_verified`.
        """
        selection = _Selection(key, topic, partition, start_offset, end_offset)
        selected = select(
            key,
            batches,
            start_offset,
            end_offset,
            since_ms,
            aborted=aborted,
            is_verified=is_verified,
        )
        payloads: list[memoryview] = []
        start = size_bytes = 0
        for end, payload in enumerate(self._payloads(key, selected), 1):
            payloads.append(payload)
            size_bytes += len(payload)
            if size_bytes >= part_bytes or end == len(selected.batches):
                part = self._decode(selection, selected.part(start, end), payloads)
                if part.num_rows:
                    yield part
                payloads = []
                start, size_bytes = end, 0

    def _payloads(self, key: str, selected: SelectedBatches) -> Iterator[memoryview]:
        """Yield the decompressed records of each batch."""
        size_bytes_max = self._decompressed_bytes_max
        for batch, is_compressed in zip(selected.batches, selected.compressed, strict=True):
            try:
                payload = batch.payload
                if is_compressed or len(payload) > size_bytes_max:
                    payload = memoryview(inflate(batch, decompressed_bytes_max=size_bytes_max))
            except RecordsError as error:
                raise DamagedObjectError(key, str(error)) from error
            yield payload

    def _decode(
        self, selection: _Selection, selected: SelectedBatches, payloads: Sequence[memoryview]
    ) -> pa.RecordBatch:
        if not payloads:
            return pa.RecordBatch.from_pylist([], schema=self._schema)
        if sum(map(len, payloads)) > PAYLOAD_BYTES_MAX:
            raise BatchTooLargeError(f"{selection.key}: too many records to decode at once")
        source, positions = join_payloads(payloads)
        batches = kernel_batches(selected.headers, payloads, positions)
        counts = batches["record_count"]
        is_invalid = (counts < 0) | (counts > batches["size_bytes"] // RECORD_BYTES_MIN)
        if is_invalid.any():
            raise self._damage_error(selection.key, selected.batches[int(is_invalid.argmax())])
        table = arrays.allocate(self._columns, int(counts.sum()))
        first_offset = max(selection.start_offset, 0)
        last_offset = min(selection.end_offset - 1, kernel.INT64_MAX)
        count = kernel.scan(source, batches, first_offset, last_offset, table)
        if count < 0:
            raise self._damage_error(selection.key, selected.batches[-1 - count])
        columns = arrays.columns(source, table, count, selection.topic, selection.partition)
        return pa.RecordBatch.from_arrays(
            [columns[name]() for name in self._columns.names], schema=self._schema
        )

    def _damage_error(self, key: str, batch: BatchView) -> DamagedObjectError:
        """Return the error for an invalid batch; the Python decoder finds the reason."""
        reason = f"the records of {batch!r} cannot be decoded"
        try:
            for _ in iterate(batch, decompressed_bytes_max=self._decompressed_bytes_max):
                pass
        except RecordsError as error:
            reason = str(error)
        return DamagedObjectError(key, reason)


def warm_up() -> None:
    """Compile the kernel ahead of use, or load it from numba's cache."""
    batch = BatchView(build([Record(0, 0, b"key", b"value", (Header("name", b"text"),))]))
    Decoder(ALL_WITH_HEADERS).decode("warm-up", "warm-up", 0, [batch], 0, 1)
