"""Encodes Arrow columns as record batches, in compiled code: the counterpart of the decoder.

Invariant: encoded records read back equal, with timestamps in milliseconds. No Python code runs per
record. The sender sets the producer fields and the offsets.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kafscale.errors import InvalidRequestError
from kafscale.records import BatchView, Codec
from kafscale.records.batch import (
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from kafscale.records.compression import compress
from kafscale.spark.codec.encoder_kernel import (
    FIELDS_BYTES_MAX,
    FULL,
    HEADER_BYTES_MAX,
    Column,
    Rows,
    partitions_of,
    write_records,
)

BATCH_BYTES: Final = 512 * 1024
"""The uncompressed size of the records of a batch."""

MESSAGE_BYTES_DEFAULT: Final = 1_048_588
"""Kafka's default of `max.message.bytes`, the maximum size of a batch."""

_EMPTY: Final = Column(np.zeros(1, np.int32), np.empty(0, np.uint8), np.empty(0, np.bool_))


class Encoder:
    """Encodes records with the columns `key`, `value`, `timestamp` and optionally `headers`."""

    __slots__ = ("_rows", "_sizes")

    def __init__(
        self, records: pa.RecordBatch, extra_header: str = "", extra_values: pa.Array = None
    ) -> None:
        """If `extra_header` is set, every record also gets that header, from `extra_values`."""
        self._rows = Rows(
            _milliseconds(records.column("timestamp")),
            _column("key", records.column("key")),
            _column("value", records.column("value")),
            *_headers(records),
            np.frombuffer(extra_header.encode(), np.uint8),
            _EMPTY if extra_values is None else _column(extra_header, extra_values),
        )
        self._sizes = _sizes(self._rows)

    def partitions(self, partition_count: int, keyless: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the partition of each record by its key, like Kafka's default partitioner."""
        output = np.empty(len(keyless), np.int32)
        partitions_of(self._rows.keys, partition_count, keyless, output)
        return output

    def batches(
        self,
        chosen: NDArray[np.int64],
        codec: Codec,
        batch_bytes: int = BATCH_BYTES,
        message_bytes_max: int = MESSAGE_BYTES_DEFAULT,
    ) -> Iterator[bytearray]:
        """Yield batches of the chosen rows, in their order.

        A batch of several records is not larger than `message_bytes_max`.
        """
        if not chosen.size:
            return
        records_bytes_max = max(message_bytes_max - HEADER_BYTES, 1)
        target = min(batch_bytes, records_bytes_max)
        output = np.empty(target + int(self._sizes[chosen].max()), np.uint8)
        done = 0
        while done < chosen.size:
            size, after = write_records(self._rows, chosen, done, output, target)
            assert size != FULL, "the output fits the largest record"
            if size > records_bytes_max and after - done > 1:
                # Without its last record, the batch is smaller than the target.
                after -= 1
                size, _ = write_records(self._rows, chosen[:after], done, output, target)
            times = self._rows.timestamps_ms[chosen[done:after]]
            yield _build_batch(output[:size], times, codec)
            done = after


def _build_batch(
    payload: NDArray[np.uint8], times_ms: NDArray[np.int64], codec: Codec
) -> bytearray:
    body: bytes | memoryview = compress(codec, payload.data)
    if len(body) >= payload.size:
        # Else the batch could exceed the limit that the records keep.
        codec, body = Codec.NONE, payload.data
    output = bytearray(
        HEADER.pack(
            0,
            HEADER_BYTES - LENGTH_OVERHEAD_BYTES + len(body),
            NO_LEADER_EPOCH,
            MAGIC,
            0,
            codec,
            times_ms.size - 1,
            int(times_ms[0]),
            int(times_ms.max()),
            NO_PRODUCER_ID,
            NO_PRODUCER_EPOCH,
            NO_SEQUENCE,
            times_ms.size,
        )
    )
    output += body
    BatchView(output).write_checksum()
    return output


def _milliseconds(times: pa.Array) -> NDArray[np.int64]:
    if times.null_count:
        raise InvalidRequestError("a record has a null timestamp")
    microseconds = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    milliseconds: NDArray[np.int64] = microseconds.to_numpy(zero_copy_only=False) // 1000
    return milliseconds


def _column(name: str, values: pa.Array) -> Column:
    if pa.types.is_string(values.type) or pa.types.is_large_binary(values.type):
        values = values.cast(pa.binary())
    if not pa.types.is_binary(values.type):
        raise InvalidRequestError(f"{name} has type {values.type}, but must be text or bytes")
    _, bounds, data = values.buffers()
    if not len(values) or bounds is None:
        return Column(np.zeros(1, np.int32), np.empty(0, np.uint8), np.empty(0, np.bool_))
    numbers = np.frombuffer(bounds, np.int32)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return Column(numbers, content, pc.is_valid(values).to_numpy(zero_copy_only=False))


def _headers(records: pa.RecordBatch) -> tuple[NDArray[np.int32], Column, Column]:
    if "headers" not in records.schema.names:
        return np.zeros(records.num_rows + 1, np.int32), _EMPTY, _EMPTY
    lists = records.column("headers")
    # `flatten` skips null lists; make them empty.
    lists = lists.fill_null([]) if lists.null_count else lists
    entries = lists.flatten()
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    bounds = np.zeros(records.num_rows + 1, np.int32)
    np.cumsum(lengths, out=bounds[1:])
    keys = entries.field("key")
    if keys.null_count:
        raise InvalidRequestError("a header key is null")
    return (
        bounds,
        _column("a header key", keys),
        _column("a header value", entries.field("value")),
    )


def _sizes(rows: Rows) -> NDArray[np.int64]:
    """Return the maximum encoded size of each record."""
    names, values = _lengths(rows.header_keys), _lengths(rows.header_values)
    sums = np.zeros(names.size + 1, np.int64)
    np.cumsum(names + values + HEADER_BYTES_MAX, out=sums[1:])
    headers = sums[rows.header_bounds[1:]] - sums[rows.header_bounds[:-1]]
    extra = _lengths(rows.extra_values) + rows.extra_header.size + HEADER_BYTES_MAX
    total: NDArray[np.int64] = headers + _lengths(rows.keys) + _lengths(rows.values)
    return total + FIELDS_BYTES_MAX + (extra if rows.extra_header.size else 0)


def _lengths(column: Column) -> NDArray[np.int64]:
    bounds = column.bounds.astype(np.int64)
    return bounds[1:] - bounds[:-1]
