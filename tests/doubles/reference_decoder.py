"""The reference for `kafscale.spark.codec.decoder`: decodes record by record in plain Python.

Tests compare the compiled decoder with it. It is one or two orders of magnitude slower.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from kafscale.errors import DamagedObjectError, RecordsError
from kafscale.records import DECOMPRESSED_BYTES_MAX, BatchView, Record, iterate
from kafscale.spark.codec.columns import Columns

_INT64_MAX: Final = 2**63 - 1
_TIMESTAMP_MS_MAX: Final = _INT64_MAX // 1000


class ReferenceDecoder:
    """Turns record batches into Arrow batches, as `decoder.Decoder` does."""

    def __init__(
        self, columns: Columns, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    ) -> None:
        self._columns = columns
        self._decompressed_bytes_max = decompressed_bytes_max

    def decode(  # noqa: PLR0917 - as `Decoder.decode`.
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
        rows: list[dict[str, Any]] = []
        try:
            for batch in batches:
                batch.verify_checksum()
                if not 0 <= batch.base_offset <= batch.last_offset <= _INT64_MAX:
                    raise DamagedObjectError(key, f"invalid offsets in {batch!r}")
                if _is_selected(batch, start_offset, end_offset, since_ms):
                    rows += [
                        _row(record, topic, partition, batch)
                        for record in self._records(batch)
                        if start_offset <= record.offset < end_offset
                    ]
        except RecordsError as error:
            raise DamagedObjectError(key, str(error)) from error
        schema = self._columns.schema
        return pa.RecordBatch.from_pylist(rows, schema=schema)

    def _records(self, batch: BatchView) -> list[Record]:
        return list(iterate(batch, decompressed_bytes_max=self._decompressed_bytes_max))


def _is_selected(
    batch: BatchView, start_offset: int, end_offset: int, since_ms: int | None
) -> bool:
    if batch.is_control or (since_ms is not None and batch.max_timestamp_ms < since_ms):
        return False
    return batch.base_offset < end_offset and batch.last_offset >= start_offset


def _row(record: Record, topic: str, partition: int, batch: BatchView) -> dict[str, Any]:
    headers = [{"key": header.key, "value": header.value} for header in record.headers]
    return {
        "key": record.key,
        "value": record.value,
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": 1000 * _clamp(record.timestamp_ms),
        "timestampType": int(batch.timestamp_type),
        "headers": headers or None,  # As in Spark's Kafka source.
    }


def _clamp(timestamp_ms: int) -> int:
    """Clamp a timestamp to 64-bit microseconds: an odd producer must not stop a job."""
    return max(-_TIMESTAMP_MS_MAX, min(timestamp_ms, _TIMESTAMP_MS_MAX))
