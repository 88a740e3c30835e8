"""Record batches turned into Arrow batches, in compiled code.

The laws: every batch handed in is verified by its checksum, here or by whoever read it; also one
that is then skipped, because what lets it be skipped is under that checksum. A batch is decoded
whole or not at all. Whatever is wrong raises `DamagedObjectError` with the name of the object,
exactly where `decoder_reference` does, which says the same in plain Python.

Nothing here is done per record, and little per batch: payloads are laid into one source, without
a copy where they are uncompressed and lie in one buffer already, and one call of the kernel finds
the records of all. Which batches to hand in, and that no offsets are missing between them, is left
to the reader.
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
from kafscale.spark.codec.decoder_batches import Chosen, choose, entries, lay_out
from kafscale.spark.source.columns import ALL_WITH_HEADERS, Columns

PART_BYTES: Final = 4 * 1024 * 1024
"""How many bytes of records make an Arrow batch where the caller names no number."""
PAYLOAD_BYTES_MAX: Final = 2**31 - 1
"""All records of one Arrow batch together: what its bounds of 32 bits can count."""


class _Range(NamedTuple):
    """Which records are wanted, and what they are called."""

    key: str
    topic: str
    partition: int
    start_offset: int
    end_offset: int


class Decoder:
    """Decodes batches of any partition into the columns that are wanted."""

    __slots__ = ("_columns", "_decompressed_bytes_max", "_schema")

    def __init__(
        self, columns: Columns, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    ) -> None:
        """Make a decoder; the records of a single batch may decompress to so many bytes."""
        self._columns = columns
        self._schema = columns.schema
        self._decompressed_bytes_max = decompressed_bytes_max

    def decode(  # noqa: PLR0917 - an object, a partition, a range: as readers say it.
        self,
        key: str,
        topic: str,
        partition: int,
        batches: Sequence[BatchView],
        start_offset: int,
        end_offset: int,
        *,
        from_ms: int | None = None,
    ) -> pa.RecordBatch:
        """The records from `start_offset` to before `end_offset`, in the order of the batches.

        Control batches are left out, and so are batches whose greatest timestamp is before
        `from_ms`: whole ones only, exact filtering is the caller's. The object that the batches are
        of is called `key`.
        """
        wanted = _Range(key, topic, partition, start_offset, end_offset)
        chosen = choose(key, batches, start_offset, end_offset, from_ms)
        return self._decode(wanted, chosen, list(self._payloads(key, chosen)))

    def decode_in_parts(  # noqa: PLR0917 - as above.
        self,
        key: str,
        topic: str,
        partition: int,
        batches: Sequence[BatchView],
        start_offset: int,
        end_offset: int,
        *,
        from_ms: int | None = None,
        part_bytes: int = PART_BYTES,
        is_verified: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The same as several Arrow batches, none of which is empty.

        Each is ended as soon as it holds `part_bytes` of records, decompressed: the memory that it
        takes is bounded by that and one batch, however well the batches are compressed. Checksums
        are left alone where the caller has compared them, and says so by `is_verified`.
        """
        wanted = _Range(key, topic, partition, start_offset, end_offset)
        chosen = choose(key, batches, start_offset, end_offset, from_ms, is_verified=is_verified)
        payloads: list[memoryview] = []
        start = size_bytes = 0
        for end, payload in enumerate(self._payloads(key, chosen), 1):
            payloads.append(payload)
            size_bytes += len(payload)
            if size_bytes >= part_bytes or end == len(chosen.batches):
                part = self._decode(wanted, chosen.part(start, end), payloads)
                if part.num_rows:
                    yield part
                payloads = []
                start, size_bytes = end, 0

    def _payloads(self, key: str, chosen: Chosen) -> Iterator[memoryview]:
        """The records of each batch, decompressed when they are asked for."""
        size_bytes_max = self._decompressed_bytes_max
        for batch, is_compressed in zip(chosen.batches, chosen.compressed, strict=True):
            try:
                payload = batch.payload
                if is_compressed or len(payload) > size_bytes_max:
                    payload = memoryview(inflate(batch, decompressed_bytes_max=size_bytes_max))
            except RecordsError as error:
                raise DamagedObjectError(key, str(error)) from error
            yield payload

    def _decode(
        self, wanted: _Range, chosen: Chosen, payloads: Sequence[memoryview]
    ) -> pa.RecordBatch:
        if not payloads:
            return pa.RecordBatch.from_pylist([], schema=self._schema)
        if sum(map(len, payloads)) > PAYLOAD_BYTES_MAX:
            raise BatchTooLargeError(f"{wanted.key}: too many records to decode them at once")
        source, positions = lay_out(payloads)
        batches = entries(chosen.headers, payloads, positions)
        counts = batches["record_count"]
        miscounted = (counts < 0) | (counts > batches["size_bytes"] // RECORD_BYTES_MIN)
        if miscounted.any():
            raise self._damage(wanted.key, chosen.batches[int(miscounted.argmax())])
        table = arrays.table(self._columns, int(counts.sum()))
        first_offset = max(wanted.start_offset, 0)
        last_offset = min(wanted.end_offset - 1, kernel.INT64_MAX)
        count = kernel.scan(source, batches, first_offset, last_offset, table)
        if count < 0:
            raise self._damage(wanted.key, chosen.batches[-1 - count])
        columns = arrays.columns(source, table, count, wanted.topic, wanted.partition)
        return pa.RecordBatch.from_arrays(
            [columns[name]() for name in self._columns.names], schema=self._schema
        )

    def _damage(self, key: str, batch: BatchView) -> DamagedObjectError:
        """What to raise for a batch that was refused: plain Python tells what is wrong with it."""
        reason = f"the records of {batch!r} cannot be decoded"
        try:
            for _ in iterate(batch, decompressed_bytes_max=self._decompressed_bytes_max):
                pass
        except RecordsError as error:
            reason = str(error)
        return DamagedObjectError(key, reason)


def warm_up() -> None:
    """Compile everything, or load what an earlier process compiled, before it is waited for."""
    batch = BatchView(build([Record(0, 0, b"key", b"value", (Header("name", b"text"),))]))
    Decoder(ALL_WITH_HEADERS).decode("warm-up", "warm-up", 0, [batch], 0, 1)
