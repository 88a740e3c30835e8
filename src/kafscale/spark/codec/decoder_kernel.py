"""The compiled part of the decoder: finds every record in the bytes, then gathers what is wanted.

Three loops, so that each array can have its exact size before it is filled:

    scan            checks all records; notes offsets, times, and where keys and values lie
    locate_headers  notes where the keys and the values of the headers lie
    gather          copies what was noted into one run of bytes, as Arrow wants it

The laws. Compiled code has no net: every index is proven to be inside its array before it is used,
whatever the bytes say and whatever the tables say. Bytes are refused exactly where
`kafscale.records.iterate` refuses them; which rule they broke is for that to tell. An array that
nobody wants is empty, and nothing is written beyond an array's size, which makes one check of two.

A position that went wrong becomes `OUTSIDE` and stays so through all further reads, as a NaN would,
so that one look at the end of a record finds it. All of it stays in one file, because that is how
far numba looks for changes before it trusts what it compiled in an earlier process.
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
"""What `scan` must know of a batch: where its payload lies in the source, and some of its header.

The offset of its last record has been found to fit 64 bits.
"""

OUTSIDE: Final = -1
NULL: Final = -1
INT64_MAX: Final = 2**63 - 1
TIMESTAMP_MS_MAX: Final = INT64_MAX // 1000
"""Times beyond, in both directions, do not fit 64 bits as microseconds and are drawn to it."""


class Spans(NamedTuple):
    """A column of bytes before they are gathered."""

    positions: NDArray[np.int64]
    """Where each begins in the source, or `NULL`."""
    bounds: NDArray[np.int32]
    """Where each begins in what is gathered; one more than there are, as in Arrow."""


class Table(NamedTuple):
    """What `scan` fills, a row for each record; what is not wanted is empty."""

    offsets: NDArray[np.int64]
    timestamps_us: NDArray[np.int64]
    timestamp_types: NDArray[np.int32]
    keys: Spans
    values: Spans
    headers: Spans
    """The positions are those of a record's first header, and the bounds count headers."""


class _Fields(NamedTuple):
    """A record as it is read, or as far as it could be."""

    position: int
    """Where the next one begins, or `OUTSIDE`."""
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
    """Compile a function when it is first called, and keep the outcome for later processes.

    It is kept beside the module or else in the user's cache directory. A process that may write to
    neither, as in many a container, compiles for itself.
    """
    try:
        dispatcher: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        dispatcher = numba.njit(nogil=True)(function)
    return cast("Callable[_Parameters, _Result]", dispatcher)


def inlined(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function into its callers: for those whose work is less than a call."""
    dispatcher: Any = numba.njit(inline="always")(function)
    return cast("Callable[_Parameters, _Result]", dispatcher)


@inlined
def _read_varint(source: NDArray[np.uint8], position: int, end: int, bits: int) -> tuple[int, int]:
    """The number at `position`, and the position after it."""
    raw = 0
    shift = 0
    while 0 <= position < end:
        byte = int(source[position])
        position += 1
        if shift + 7 > bits and byte >> (bits - shift):
            break  # It is too wide, or goes on where it must not.
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((raw >> 1) & INT64_MAX) ^ -(raw & 1), position
        shift += 7
    return 0, OUTSIDE


@inlined
def _read_bytes(source: NDArray[np.uint8], position: int, end: int) -> tuple[int, int, int]:
    """Where a field lies, how long it is, and the position after it."""
    length, position = _read_varint(source, position, end, 32)
    if position == OUTSIDE or length < NULL or length > end - position:
        return NULL, 0, OUTSIDE
    if length == NULL:
        return NULL, 0, position
    return position, length, position + length


@inlined
def _skip_headers(source: NDArray[np.uint8], position: int, end: int, count: int) -> int:
    """The position after so many headers."""
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
def _note(spans: Spans, index: int, position: int, length: int) -> None:
    """Enter one span, after those before it."""
    if index < spans.positions.size and index + 1 < spans.bounds.size:
        spans.positions[index] = position
        spans.bounds[index + 1] = spans.bounds[index] + length


@compiled
def _enter(table: Table, row: int, offset: int, timestamp_ms: int, fields: _Fields) -> None:
    """Enter one record into whatever is wanted of it."""
    if row < table.offsets.size:
        table.offsets[row] = offset
    if row < table.timestamps_us.size:
        clamped_ms = max(-TIMESTAMP_MS_MAX, min(timestamp_ms, TIMESTAMP_MS_MAX))
        table.timestamps_us[row] = 1000 * clamped_ms
    _note(table.keys, row, fields.key_position, fields.key_length)
    _note(table.values, row, fields.value_position, fields.value_length)
    _note(table.headers, row, fields.headers_position, fields.header_count)


@compiled
def scan(
    source: NDArray[np.uint8],
    batches: NDArray[np.void],
    first_offset: int,
    last_offset: int,
    table: Table,
) -> int:
    """Enter the records from `first_offset` to `last_offset`; how many they are.

    If the batch at an index is wrong anywhere, then -1 less that index.
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
            # The sum of two numbers with the same sign must have that sign, or did not fit.
            over = (batch.base_timestamp_ms ^ timestamp_ms) & (timestamp_delta ^ timestamp_ms)
            position = fields.position
            in_batch = 0 <= fields.offset_delta <= batch.last_offset_delta
            if position == OUTSIDE or not in_batch or over < 0:
                return -1 - index
            offset = batch.base_offset + fields.offset_delta
            if is_append_time:
                timestamp_ms = batch.max_timestamp_ms
            if first_offset <= offset <= last_offset:
                _enter(table, row, offset, timestamp_ms, fields)
                row += 1
        if position != end:
            return -1 - index
        table.timestamp_types[first_row:row] = is_append_time  # A slice ends with its array.
    return row


@compiled
def locate_headers(
    source: NDArray[np.uint8], headers: Spans, count: int, keys: Spans, values: Spans
) -> None:
    """Note where all headers of the first `count` records lie, which `scan` has found sound."""
    entry = 0
    for row in range(min(count, headers.positions.size, headers.bounds.size - 1)):
        position = headers.positions[row]
        for _ in range(headers.bounds[row + 1] - headers.bounds[row]):
            key_position, length, position = _read_bytes(source, position, source.size)
            _note(keys, entry, key_position, length)
            value_position, length, position = _read_bytes(source, position, source.size)
            _note(values, entry, value_position, length)
            if position == OUTSIDE:
                return
            entry += 1


@compiled
def gather(source: NDArray[np.uint8], spans: Spans, count: int, output: NDArray[np.uint8]) -> None:
    """Copy the first `count` spans one behind the other; nulls take no bytes."""
    for index in range(min(count, spans.positions.size, spans.bounds.size - 1)):
        position = spans.positions[index]
        start, end = spans.bounds[index], spans.bounds[index + 1]
        length = end - start
        if (
            length > 0
            and 0 <= position <= source.size - length
            and 0 <= start <= output.size - length
        ):
            # A plain loop over two views is what LLVM turns into a copy by whole vectors; to assign
            # one slice to the other is five times slower.
            taken = source[position : position + length]
            placed = output[start:end]
            for place in range(length):
                placed[place] = taken[place]
