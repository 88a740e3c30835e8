"""Builds Arrow arrays from the arrays that the kernel fills, without copying.

Arrow strings must be UTF-8: header keys that are not are decoded with replacement characters, as in
`kafscale.records`.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafscale.spark.codec import decoder_kernel as kernel
from kafscale.spark.codec.columns import ALL_WITH_HEADERS, Columns
from kafscale.spark.codec.decoder_kernel import NULL, Spans, Table

_TYPES: Final = ALL_WITH_HEADERS.schema
_HEADERS: Final = _TYPES.field("headers").type


def allocate(columns: Columns, capacity: int) -> Table:
    """Allocate the arrays of the selected columns for `capacity` records."""

    def size(name: str) -> int:
        return capacity if name in columns else 0

    return Table(
        offsets=np.empty(size("offset"), np.int64),
        timestamps_us=np.empty(size("timestamp"), np.int64),
        timestamp_types=np.empty(size("timestampType"), np.int32),
        keys=_spans(size("key")),
        values=_spans(size("value")),
        headers=_spans(size("headers")),
    )


def columns(
    source: NDArray[np.uint8], table: Table, count: int, topic: str, partition: int
) -> dict[str, Callable[[], pa.Array]]:
    """Return a builder of each column of the first `count` records."""
    return {
        "key": lambda: _binary(source, table.keys, count),
        "value": lambda: _binary(source, table.values, count),
        "topic": lambda: pa.repeat(topic, count),
        "partition": lambda: pa.repeat(pa.scalar(partition, pa.int32()), count),
        "offset": lambda: _fixed("offset", table.offsets, count),
        "timestamp": lambda: _fixed("timestamp", table.timestamps_us, count),
        "timestampType": lambda: _fixed("timestampType", table.timestamp_types, count),
        "headers": lambda: _headers(source, table.headers, count),
    }


def _spans(count: int) -> Spans:
    return Spans(np.empty(count, np.int64), np.zeros(count + 1, np.int32))


def _fixed(name: str, numbers: NDArray[np.int64] | NDArray[np.int32], count: int) -> pa.Array:
    return pa.Array.from_buffers(_TYPES.field(name).type, count, [None, pa.py_buffer(numbers)])


def _binary(source: NDArray[np.uint8], spans: Spans, count: int) -> pa.Array:
    data = np.empty(spans.bounds[count], np.uint8)
    kernel.gather(source, spans, count, data)
    is_null = spans.positions[:count] == NULL
    buffers = [_validity(is_null), pa.py_buffer(spans.bounds), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def _headers(source: NDArray[np.uint8], headers: Spans, count: int) -> pa.Array:
    """Build lists of headers; null for a record without headers, as in Spark's Kafka source."""
    entries = int(headers.bounds[count])
    keys, values = _spans(entries), _spans(entries)
    kernel.locate_headers(source, headers, count, keys, values)
    named = pa.StructArray.from_arrays(
        [_text(_binary(source, keys, entries)), _binary(source, values, entries)],
        fields=list(_HEADERS.value_type),
    )
    is_null = headers.bounds[1 : count + 1] == headers.bounds[:count]
    buffers = [_validity(is_null), pa.py_buffer(headers.bounds)]
    return pa.Array.from_buffers(_HEADERS, count, buffers, children=[named])


def _text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        decoded = [name.as_py().decode("utf-8", "replace") for name in names]
        return pa.array(decoded, pa.string())


def _validity(is_null: NDArray[np.bool_]) -> pa.Buffer | None:
    """Return Arrow's validity bitmap; None if nothing is null."""
    return pa.py_buffer(np.packbits(~is_null, bitorder="little")) if is_null.any() else None
