"""The compiled part of the encoder: writes records from columns, and finds partitions by keys.

What it reads are Arrow's own arrays, checked by Arrow. All the same, nothing is written beyond the
end of the output: a record that has no room ends the writing, and the caller is told.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafscale.spark.codec.decoder_kernel import compiled, inlined

FULL: Final = -1
"""Returned instead of a position where a record has no room."""

FIELDS_BYTES_MAX: Final = 36
"""What a record takes beside its bytes: length, attributes, deltas, lengths of fields, count."""

HEADER_BYTES_MAX: Final = 10
"""What a header takes beside its bytes: two lengths."""

_SEED: Final = np.uint32(0x9747B28C)
_MULTIPLIER: Final = np.uint32(0x5BD1E995)


class Column(NamedTuple):
    """Bytes as Arrow has them: where each begins, all of them, and which are there at all."""

    bounds: NDArray[np.int32]
    data: NDArray[np.uint8]
    is_there: NDArray[np.bool_]


class Rows(NamedTuple):
    """The columns of records. The headers of a row are those between its two bounds."""

    timestamps_ms: NDArray[np.int64]
    keys: Column
    values: Column
    header_bounds: NDArray[np.int32]
    header_keys: Column
    header_values: Column
    mark_key: NDArray[np.uint8]
    """The name of a header that every record gets; empty if there is none."""
    marks: Column


@inlined
def _width(value: np.int64) -> int:
    """How many bytes a number takes."""
    raw = np.uint64((value << np.int64(1)) ^ (value >> np.int64(63)))
    width = 1
    while raw > np.uint64(0x7F):
        raw >>= np.uint64(7)
        width += 1
    return width


@compiled
def _write_number(output: NDArray[np.uint8], position: int, value: np.int64) -> int:
    raw = np.uint64((value << np.int64(1)) ^ (value >> np.int64(63)))
    while raw > np.uint64(0x7F):
        output[position] = np.uint8((raw & np.uint64(0x7F)) | np.uint64(0x80))
        raw >>= np.uint64(7)
        position += 1
    output[position] = np.uint8(raw)
    return position + 1


@compiled
def _write_bytes(output: NDArray[np.uint8], position: int, data: NDArray[np.uint8]) -> int:
    position = _write_number(output, position, np.int64(data.size))
    placed = output[position : position + data.size]
    for place in range(data.size):
        placed[place] = data[place]
    return position + data.size


@compiled
def _write_field(output: NDArray[np.uint8], position: int, column: Column, row: int) -> int:
    if not column.is_there[row]:
        return _write_number(output, position, np.int64(-1))
    return _write_bytes(output, position, column.data[column.bounds[row] : column.bounds[row + 1]])


@inlined
def _field_bytes(column: Column, row: int) -> int:
    """How many bytes a field takes with its length."""
    if not column.is_there[row]:
        return 1
    length = np.int64(column.bounds[row + 1]) - np.int64(column.bounds[row])
    return _width(length) + int(length)


@compiled
def record_bytes(rows: Rows, row: int, timestamp_delta: np.int64, offset_delta: np.int64) -> int:
    """How many bytes a record takes, without the number that says so."""
    first, after = rows.header_bounds[row], rows.header_bounds[row + 1]
    count = np.int64(after - first)
    mark_bytes = np.int64(rows.mark_key.size)
    size = 1 + _width(timestamp_delta) + _width(offset_delta)
    size += _field_bytes(rows.keys, row) + _field_bytes(rows.values, row)
    for header in range(first, after):
        size += _field_bytes(rows.header_keys, header) + _field_bytes(rows.header_values, header)
    if mark_bytes:
        count += np.int64(1)
        size += _width(mark_bytes) + int(mark_bytes) + _field_bytes(rows.marks, row)
    return size + _width(count)


@compiled
def write_records(
    rows: Rows, chosen: NDArray[np.int64], first: int, output: NDArray[np.uint8], bytes_wanted: int
) -> tuple[int, int]:
    """Write records from the one on that is `first` among the chosen rows, as those of one batch.

    It ends with the one that reaches the bytes wanted. The position after the last that was
    written, and how many of the chosen are done; `FULL` where a record has no room.
    """
    position = 0
    index = first
    base_timestamp_ms = rows.timestamps_ms[chosen[first]]
    while index < chosen.size and position < bytes_wanted:
        row = chosen[index]
        timestamp_delta = rows.timestamps_ms[row] - base_timestamp_ms
        offset_delta = np.int64(index - first)
        size = record_bytes(rows, row, timestamp_delta, offset_delta)
        if size + 5 > output.size - position:
            return FULL, index
        position = _write_number(output, position, np.int64(size))
        output[position] = 0
        position = _write_number(output, position + 1, timestamp_delta)
        position = _write_number(output, position, offset_delta)
        position = _write_field(output, position, rows.keys, row)
        position = _write_field(output, position, rows.values, row)
        header_first, header_after = rows.header_bounds[row], rows.header_bounds[row + 1]
        has_mark = np.int64(rows.mark_key.size > 0)
        count = np.int64(header_after - header_first) + has_mark
        position = _write_number(output, position, count)
        for header in range(header_first, header_after):
            position = _write_field(output, position, rows.header_keys, header)
            position = _write_field(output, position, rows.header_values, header)
        if has_mark:
            position = _write_bytes(output, position, rows.mark_key)
            position = _write_field(output, position, rows.marks, row)
        index += 1
    return position, index


@compiled
def murmur2(data: NDArray[np.uint8]) -> np.uint32:
    """The hash by which Kafka's producers choose partitions."""
    value = _SEED ^ np.uint32(data.size)
    whole = data.size & ~3
    for place in range(0, whole, 4):
        word = (
            np.uint32(data[place])
            | np.uint32(data[place + 1]) << np.uint32(8)
            | np.uint32(data[place + 2]) << np.uint32(16)
            | np.uint32(data[place + 3]) << np.uint32(24)
        )
        word = np.uint32(word * _MULTIPLIER)
        word = np.uint32((word ^ word >> np.uint32(24)) * _MULTIPLIER)
        value = np.uint32(value * _MULTIPLIER) ^ word
    if whole < data.size:
        for place in range(data.size - 1, whole - 1, -1):
            value ^= np.uint32(data[place]) << np.uint32(8 * (place - whole))
        value = np.uint32(value * _MULTIPLIER)
    value = np.uint32((value ^ value >> np.uint32(13)) * _MULTIPLIER)
    return value ^ value >> np.uint32(15)


@compiled
def partitions_of(
    keys: Column, partition_count: int, otherwise: NDArray[np.int32], output: NDArray[np.int32]
) -> None:
    """The partition of each key; that of the row's own choice where there is none."""
    for row in range(output.size):
        if keys.is_there[row]:
            hashed = murmur2(keys.data[keys.bounds[row] : keys.bounds[row + 1]])
            output[row] = np.int64(hashed & np.uint32(0x7FFFFFFF)) % partition_count
        else:
            output[row] = otherwise[row] % partition_count
