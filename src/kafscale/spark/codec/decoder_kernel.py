"""The compiled part of the decoder: finds the records in the payloads and copies their fields.

Three loops, so that each array has its exact size before it is filled:

    scan            checks all records; stores offsets, timestamps, and positions of keys and values
    locate_headers  stores the positions of the keys and values of headers
    gather          copies the bytes at stored positions into one contiguous array, for Arrow

Invariants: compiled code has no bounds checks, so every index is checked against its array before
use, whatever the payload and the tables contain. A payload is rejected exactly where
`kafscale.records.iterate` rejects it; that function is then called to find the reason. The array of
a column that is not selected is empty, and nothing is written beyond the size of an array; one
check covers both.

An invalid position becomes `OUTSIDE` and stays so through further reads, like a NaN, so that one
check at the end of a record finds it. All functions are in one file, because numba checks only that
file for changes before it uses code from its cache.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from kafscale.records.batch import TIMESTAMP_TYPE_BIT

BATCH: Final = np.dtype(
    [
        ("position", np.int64),
        ("size_bytes", np.int64),
        ("attributes", np.int64),
        ("record_count", np.int64),
        ("base_offset", np.int64),
        ("last_offset_delta", np.int64),
        ("base_timestamp_ms", np.int64),
        ("max_timestamp_ms", np.int64),
    ]
)
"""The input of `scan` for a batch: its payload in the source, and header fields.

The caller has checked that the last offset fits 64 bits.
"""

OUTSIDE: Final = -1
NULL: Final = -1
INT64_MAX: Final = 2**63 - 1
TIMESTAMP_MS_MAX: Final = INT64_MAX // 1000
"""Greater timestamps, and less than its negative, overflow as microseconds and are clamped."""


class Spans(NamedTuple):
    """A column of byte strings before they are copied."""

    positions: NDArray[np.int64]
    """The position of each in the source, or `NULL`."""
    bounds: NDArray[np.int32]
    """Offsets into the copied bytes, one more than there are strings, as in Arrow."""


class Table(NamedTuple):
    """The output of `scan`, a row for each record; columns that are not selected are empty."""

    offsets: NDArray[np.int64]
    timestamps_us: NDArray[np.int64]
    timestamp_types: NDArray[np.int32]
    keys: Spans
    values: Spans
    headers: Spans
    """Positions are those of the first header of a record; bounds count headers."""


class _Fields(NamedTuple):
    """The fields of a record; incomplete if it is invalid."""

    position: int
    """The position of the next record, or `OUTSIDE`."""
    timestamp_delta: int
    offset_delta: int
    key_position: int
    key_length: int
    value_position: int
    value_length: int
    headers_position: int
    header_count: int


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function on its first call, and cache the result on disk.

    The cache is beside the module, or else in the cache directory of the user. A process that can
    write to neither, as in many containers, compiles without a cache.
    """
    try:
        dispatcher: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        dispatcher = numba.njit(nogil=True)(function)
    return cast("Callable[_Parameters, _Result]", dispatcher)


def inlined(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Inline a function into its callers; for small functions."""
    dispatcher: Any = numba.njit(inline="always")(function)
    return cast("Callable[_Parameters, _Result]", dispatcher)


@inlined
def _read_varint(source: NDArray[np.uint8], position: int, end: int, bits: int) -> tuple[int, int]:
    """Read the varint at `position`; return it and the position after it."""
    raw = 0
    shift = 0
    while 0 <= position < end:
        byte = int(source[position])
        position += 1
        if shift + 7 > bits and byte >> (bits - shift):
            break  # It exceeds the width, or does not end.
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((raw >> 1) & INT64_MAX) ^ -(raw & 1), position
        shift += 7
    return 0, OUTSIDE


@inlined
def _read_bytes(source: NDArray[np.uint8], position: int, end: int) -> tuple[int, int, int]:
    """Return the position and length of a field, and the position after it."""
    length, position = _read_varint(source, position, end, 32)
    if position == OUTSIDE or length < NULL or length > end - position:
        return NULL, 0, OUTSIDE
    if length == NULL:
        return NULL, 0, position
    return position, length, position + length


@inlined
def _skip_headers(source: NDArray[np.uint8], position: int, end: int, count: int) -> int:
    """Return the position after `count` headers."""
    if count < 0:
        return OUTSIDE
    for _ in range(count):
        key_position, _length, position = _read_bytes(source, position, end)
        if key_position == NULL:
            return OUTSIDE
        _position, _length, position = _read_bytes(source, position, end)
        if position == OUTSIDE:
            return OUTSIDE
    return position


@inlined
def _read_record(source: NDArray[np.uint8], position: int, batch_end: int) -> _Fields:
    length, start = _read_varint(source, position, batch_end, 32)
    if start == OUTSIDE or length < 0 or length > batch_end - start:
        return _Fields(OUTSIDE, 0, 0, NULL, 0, NULL, 0, OUTSIDE, 0)
    end = start + length
    timestamp_delta, position = _read_varint(source, start + 1, end, 64)
    offset_delta, position = _read_varint(source, position, end, 32)
    key_position, key_length, position = _read_bytes(source, position, end)
    value_position, value_length, position = _read_bytes(source, position, end)
    header_count, headers_position = _read_varint(source, position, end, 32)
    position = _skip_headers(source, headers_position, end, header_count)
    return _Fields(
        position if position == end else OUTSIDE,
        timestamp_delta,
        offset_delta,
        key_position,
        key_length,
        value_position,
        value_length,
        headers_position,
        header_count,
    )


@compiled
def _set_span(spans: Spans, index: int, position: int, length: int) -> None:
    """Set one span; those before it must be set."""
    if index < spans.positions.size and index + 1 < spans.bounds.size:
        spans.positions[index] = position
        spans.bounds[index + 1] = spans.bounds[index] + length


@compiled
def _set_row(table: Table, row: int, offset: int, timestamp_ms: int, fields: _Fields) -> None:
    """Set the selected columns of one record."""
    if row < table.offsets.size:
        table.offsets[row] = offset
    if row < table.timestamps_us.size:
        clamped_ms = max(-TIMESTAMP_MS_MAX, min(timestamp_ms, TIMESTAMP_MS_MAX))
        table.timestamps_us[row] = 1000 * clamped_ms
    _set_span(table.keys, row, fields.key_position, fields.key_length)
    _set_span(table.values, row, fields.value_position, fields.value_length)
    _set_span(table.headers, row, fields.headers_position, fields.header_count)


@compiled
def scan(
    source: NDArray[np.uint8],
    batches: NDArray[np.void],
    first_offset: int,
    last_offset: int,
    table: Table,
) -> int:
    """Scan the records from `first_offset` to `last_offset`; return their number.

    If the batch at an index is invalid, return -1 - index.
    """
    row = 0
    for index in range(batches.size):
        batch = batches[index]
        position, end = batch.position, batch.position + batch.size_bytes
        if not 0 <= position <= end <= source.size:
            return -1 - index
        first_row = row
        is_append_time = bool(batch.attributes & TIMESTAMP_TYPE_BIT)
        for _ in range(batch.record_count):
            fields = _read_record(source, position, end)
            timestamp_delta = fields.timestamp_delta
            timestamp_ms = batch.base_timestamp_ms + timestamp_delta
            # The sum of two numbers of the same sign has that sign, unless it overflows.
            over = (batch.base_timestamp_ms ^ timestamp_ms) & (timestamp_delta ^ timestamp_ms)
            position = fields.position
            in_batch = 0 <= fields.offset_delta <= batch.last_offset_delta
            if position == OUTSIDE or not in_batch or over < 0:
                return -1 - index
            offset = batch.base_offset + fields.offset_delta
            if is_append_time:
                timestamp_ms = batch.max_timestamp_ms
            if first_offset <= offset <= last_offset:
                _set_row(table, row, offset, timestamp_ms, fields)
                row += 1
        if position != end:
            return -1 - index
        table.timestamp_types[first_row:row] = is_append_time  # The slice is clipped to the array.
    return row


@compiled
def locate_headers(
    source: NDArray[np.uint8], headers: Spans, count: int, keys: Spans, values: Spans
) -> None:
    """Store the positions of all headers of the first `count` records, which `scan` has checked."""
    entry = 0
    for row in range(min(count, headers.positions.size, headers.bounds.size - 1)):
        position = headers.positions[row]
        for _ in range(headers.bounds[row + 1] - headers.bounds[row]):
            key_position, length, position = _read_bytes(source, position, source.size)
            _set_span(keys, entry, key_position, length)
            value_position, length, position = _read_bytes(source, position, source.size)
            _set_span(values, entry, value_position, length)
            if position == OUTSIDE:
                return
            entry += 1


@compiled
def gather(source: NDArray[np.uint8], spans: Spans, count: int, output: NDArray[np.uint8]) -> None:
    """Copy the first `count` spans to consecutive bytes; nulls take none."""
    for index in range(min(count, spans.positions.size, spans.bounds.size - 1)):
        position = spans.positions[index]
        start, end = spans.bounds[index], spans.bounds[index + 1]
        length = end - start
        if (
            length > 0
            and 0 <= position <= source.size - length
            and 0 <= start <= output.size - length
        ):
            # LLVM vectorizes a plain loop over two views; assigning one slice to the other is
            # five times slower.
            origin = source[position : position + length]
            target = output[start:end]
            for at in range(length):
                target[at] = origin[at]
