"""Decodes JSON values, one object per record, with or without a schema.

With a schema, other fields are ignored; unless the decoder grows: then new fields become columns at
the end, but the type of a column changes only as `evolution` allows, and values that do not fit are
invalid. Without a schema, it grows from an empty one. A column starts with its first value that is
not null.
"""

import pyarrow as pa
import pyarrow.compute as pc

from kafscale.serde.registry import wire_format
from kafscale.spark.values import evolution, json_inference
from kafscale.spark.values.base import Decoded, Row, all_good, decode_rows, nullable
from kafscale.spark.values.json_columns import ColumnReader
from kafscale.spark.values.json_rows import RowReader


class JsonDecoder:
    """Uses the fast reader, and the exact one where that gives up."""

    __slots__ = ("_columns", "_declared", "_grows", "_is_framed", "_rows", "_schema")

    def __init__(
        self, schema: pa.Schema | None = None, *, grows: bool = False, is_framed: bool = False
    ) -> None:
        self._grows = grows or schema is None
        self._is_framed = is_framed
        self._declared = pa.schema([])
        self._schema: pa.Schema | None = None
        if schema is not None:
            self._set_schema(schema)

    @property
    def schema(self) -> pa.Schema | None:
        return self._schema

    def decode(self, values: pa.BinaryArray) -> Decoded:
        payloads = _payloads(values) if self._is_framed else values
        if self._grows:
            self._grow(payloads)
        if self._schema is None:
            self._set_schema(pa.schema([]))
        if payloads.null_count == values.null_count:
            table = self._columns.read(payloads)
            if table is not None:
                return all_good(table)
        return decode_rows(values, self._read, lambda: self._schema)

    def _read(self, value: bytes) -> Row:
        return self._rows.read(wire_format.split(value)[1] if self._is_framed else value)

    def _grow(self, payloads: pa.BinaryArray) -> None:
        observed = json_inference.observe(payloads)
        known = [field for field in observed if not pa.types.is_null(field.type)]
        extended = evolution.extend(self._declared, json_inference.finalize(known))
        if extended != self._declared:
            self._set_schema(extended)

    def _set_schema(self, schema: pa.Schema) -> None:
        self._declared = schema
        self._schema = nullable(schema)
        self._columns = ColumnReader(schema)
        self._rows = RowReader(schema)


def _payloads(values: pa.BinaryArray) -> pa.BinaryArray:
    """Remove the wire format header; null for values without one."""
    lengths = pc.binary_length(values)
    is_framed = pc.and_(
        pc.starts_with(values, bytes([wire_format.MAGIC])),
        pc.greater_equal(lengths, wire_format.HEADER_BYTES),
    )
    # Without an end, Arrow computes a wrong buffer size.
    end = max(pc.max(lengths).as_py() or 0, wire_format.HEADER_BYTES)
    payloads = pc.binary_slice(values, wire_format.HEADER_BYTES, end)
    return pc.if_else(is_framed, payloads, pa.scalar(None, values.type))
