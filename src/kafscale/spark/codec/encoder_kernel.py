"""The compiled part of the encoder: writes records from columns, and hashes keys to partitions.

Its input are Arrow's own arrays, checked by Arrow. Nothing is written beyond the end of the output:
`write_records` stops at a record that does not fit, and reports it.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafscale.spark.codec.decoder_kernel import compiled, inlined

FULL: Final = -1
"""Returned instead of a position if a record does not fit."""

FIELDS_BYTES_MAX: Final = 36
"""The overhead of a record: length, attributes, deltas, field lengths, header count."""

HEADER_BYTES_MAX: Final = 10
"""The overhead of a header: two lengths."""

_SEED: Final = np.uint32(0x9747B28C)
_MULTIPLIER: Final = np.uint32(0x5BD1E995)


class Column(NamedTuple):
    """A column of byte strings, like Arrow's: bounds, data, and which are not null."""

    bounds: NDArray[np.int32]
    data: NDArray[np.uint8]
    is_valid: NDArray[np.bool_]


class Rows(NamedTuple):
    """The columns of records. The headers of a row are between its two bounds."""

    timestamps_ms: NDArray[np.int64]
    keys: Column
    values: Column
    header_bounds: NDArray[np.int32]
    header_keys: Column
    header_values: Column
    extra_header: NDArray[np.uint8]
    """The key of a header that every record gets; empty if there is none."""
    extra_values: Column


@inlined
def _width(value: np.int64) -> int:
    """Return the size of a varint."""
    raw = np.uint64((value << np.int64(1)) ^ (value >> np.int64(63)))
    width = 1
    while raw > np.uint64(0x7F):
        raw >>= np.uint64(7)
        width += 1
    return width


@compiled
def _write_varint(output: NDArray[np.uint8], position: int, value: np.int64) -> int:
    raw = np.uint64((value << np.int64(1)) ^ (value >> np.int64(63)))
    while raw > np.uint64(0x7F):
        output[position] = np.uint8((raw & np.uint64(0x7F)) | np.uint64(0x80))
        raw >>= np.uint64(7)
        position += 1
    output[position] = np.uint8(raw)
    return position + 1


@compiled
def _write_bytes(output: NDArray[np.uint8], position: int, data: NDArray[np.uint8]) -> int:
    position = _write_varint(output, position, np.int64(data.size))
    target = output[position : position + data.size]
    for at in range(data.size):
        target[at] = data[at]
    return position + data.size


@compiled
def _write_field(output: NDArray[np.uint8], position: int, column: Column, row: int) -> int:
    if not column.is_valid[row]:
        return _write_varint(output, position, np.int64(-1))
    return _write_bytes(output, position, column.data[column.bounds[row] : column.bounds[row + 1]])


@inlined
def _field_bytes(column: Column, row: int) -> int:
    """Return the size of a field with its length."""
    if not column.is_valid[row]:
        return 1
    length = np.int64(column.bounds[row + 1]) - np.int64(column.bounds[row])
    return _width(length) + int(length)


@compiled
def record_bytes(rows: Rows, row: int, timestamp_delta: np.int64, offset_delta: np.int64) -> int:
    """Return the size of a record, without its length field."""
    first, after = rows.header_bounds[row], rows.header_bounds[row + 1]
    count = np.int64(after - first)
    extra_bytes = np.int64(rows.extra_header.size)
    size = 1 + _width(timestamp_delta) + _width(offset_delta)
    size += _field_bytes(rows.keys, row) + _field_bytes(rows.values, row)
    for header in range(first, after):
        size += _field_bytes(rows.header_keys, header) + _field_bytes(rows.header_values, header)
    if extra_bytes:
        count += np.int64(1)
        size += _width(extra_bytes) + int(extra_bytes) + _field_bytes(rows.extra_values, row)
    return size + _width(count)


@compiled
def write_records(
    rows: Rows, chosen: NDArray[np.int64], first: int, output: NDArray[np.uint8], bytes_target: int
) -> tuple[int, int]:
    """Write the records of one batch, starting with the chosen row at index `first`.

    The batch ends with the record that reaches the target size. Return the position after it, or
    `FULL` if a record does not fit, and the index of the next chosen row.
    """
    position = 0
    index = first
    base_timestamp_ms = rows.timestamps_ms[chosen[first]]
    while index < chosen.size and position < bytes_target:
        row = chosen[index]
        timestamp_delta = rows.timestamps_ms[row] - base_timestamp_ms
        offset_delta = np.int64(index - first)
        size = record_bytes(rows, row, timestamp_delta, offset_delta)
        if size + 5 > output.size - position:
            return FULL, index
        position = _write_varint(output, position, np.int64(size))
        output[position] = 0
        position = _write_varint(output, position + 1, timestamp_delta)
        position = _write_varint(output, position, offset_delta)
        position = _write_field(output, position, rows.keys, row)
        position = _write_field(output, position, rows.values, row)
        header_first, header_after = rows.header_bounds[row], rows.header_bounds[row + 1]
        has_extra = np.int64(rows.extra_header.size > 0)
        count = np.int64(header_after - header_first) + has_extra
        position = _write_varint(output, position, count)
        for header in range(header_first, header_after):
            position = _write_field(output, position, rows.header_keys, header)
            position = _write_field(output, position, rows.header_values, header)
        if has_extra:
            position = _write_bytes(output, position, rows.extra_header)
            position = _write_field(output, position, rows.extra_values, row)
        index += 1
    return position, index


@compiled
def murmur2(data: NDArray[np.uint8]) -> np.uint32:
    """Return the hash of Kafka's default partitioner."""
    value = _SEED ^ np.uint32(data.size)
    whole = data.size & ~3
    for at in range(0, whole, 4):
        word = (
            np.uint32(data[at])
            | np.uint32(data[at + 1]) << np.uint32(8)
            | np.uint32(data[at + 2]) << np.uint32(16)
            | np.uint32(data[at + 3]) << np.uint32(24)
        )
        word = np.uint32(word * _MULTIPLIER)
        word = np.uint32((word ^ word >> np.uint32(24)) * _MULTIPLIER)
        value = np.uint32(value * _MULTIPLIER) ^ word
    if whole < data.size:
        for at in range(data.size - 1, whole - 1, -1):
            value ^= np.uint32(data[at]) << np.uint32(8 * (at - whole))
        value = np.uint32(value * _MULTIPLIER)
    value = np.uint32((value ^ value >> np.uint32(13)) * _MULTIPLIER)
    return value ^ value >> np.uint32(15)


@compiled
def partitions_of(
    keys: Column, partition_count: int, keyless: NDArray[np.int32], output: NDArray[np.int32]
) -> None:
    """Compute the partition of each key; rows without a key use `keyless`."""
    for row in range(output.size):
        if keys.is_valid[row]:
            hashed = murmur2(keys.data[keys.bounds[row] : keys.bounds[row + 1]])
            output[row] = np.int64(hashed & np.uint32(0x7FFFFFFF)) % partition_count
        else:
            output[row] = keyless[row] % partition_count
