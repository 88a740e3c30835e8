"""Builds record batches of magic 2, and recompresses them.

`build` is the inverse of `record.iterate`, for tools, tests and up-conversion. `recompress` is for
rolling segments. Batches on the produce path are built by clients and not rebuilt.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from kafscale.errors import InvalidRecordError
from kafscale.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    LENGTH_POSITION,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchView,
    TimestampType,
)
from kafscale.records.compression import CODEC_MASK, DECOMPRESSED_BYTES_MAX, Codec, compress
from kafscale.records.record import Record, append_varint, append_varlong, inflate

_LENGTH: Final = Struct(">i")
_ATTRIBUTES: Final = Struct(">h")


def build(
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_LEADER_EPOCH,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """Build a batch of records with ascending offsets; the first is the base offset."""
    if not records:
        raise InvalidRecordError("a batch needs at least one record")
    base_offset, base_timestamp_ms = records[0].offset, records[0].timestamp_ms
    plain = bytearray()
    offset_before = base_offset - 1
    for record in records:
        if record.offset <= offset_before:
            raise InvalidRecordError(
                f"offsets do not ascend: {record.offset} after {offset_before}"
            )
        offset_before = record.offset
        _append_record(plain, record, base_offset, base_timestamp_ms)
    payload = compress(codec, plain)
    attributes = (
        codec
        | (TIMESTAMP_TYPE_BIT if timestamp_type is TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
    )
    header = HEADER.pack(
        base_offset,
        HEADER_BYTES - LENGTH_OVERHEAD_BYTES + len(payload),
        leader_epoch,
        MAGIC,
        0,  # The checksum is written last.
        attributes,
        records[-1].offset - base_offset,
        base_timestamp_ms,
        max(record.timestamp_ms for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    output = bytearray(header)
    output += payload
    BatchView(output).write_checksum()
    return output


def recompress(
    batch: BatchView, codec: Codec, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytearray:
    """Return the batch with another codec; only length, codec and checksum change.

    The result may be larger than the batch if the data is incompressible; the caller compares.
    """
    if batch.codec is Codec.NONE:
        payload = compress(codec, batch.payload)
    else:
        inflated = inflate(batch, decompressed_bytes_max=decompressed_bytes_max)
        payload = compress(codec, inflated)
    output = bytearray(batch.buffer[:HEADER_BYTES])
    output += payload
    _LENGTH.pack_into(output, LENGTH_POSITION, len(output) - LENGTH_OVERHEAD_BYTES)
    _ATTRIBUTES.pack_into(output, ATTRIBUTES_POSITION, batch.attributes & ~CODEC_MASK | codec)
    BatchView(output).write_checksum()
    return output


def _append_record(
    output: bytearray, record: Record, base_offset: int, base_timestamp_ms: int
) -> None:
    fields = bytearray(1)  # The record's attributes, which Kafka does not use.
    append_varlong(fields, record.timestamp_ms - base_timestamp_ms)
    append_varint(fields, record.offset - base_offset)
    _append_bytes(fields, record.key)
    _append_bytes(fields, record.value)
    append_varint(fields, len(record.headers))
    for header in record.headers:
        _append_bytes(fields, header.key.encode())
        _append_bytes(fields, header.value)
    append_varint(output, len(fields))
    output += fields


def _append_bytes(output: bytearray, value: bytes | None) -> None:
    if value is None:
        append_varint(output, -1)
    else:
        append_varint(output, len(value))
        output += value
