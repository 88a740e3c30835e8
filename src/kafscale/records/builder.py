"""Records made into a batch of magic 2, as producers do it.

The counterpart of `record.iterate`: what is built here reads back equal. Used at the edges (tools,
tests, up-conversion); batches on the produce path were built by clients and are never rebuilt.
"""

from collections.abc import Sequence

from kafscale.errors import InvalidRecordError
from kafscale.records.batch import (
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
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
from kafscale.records.compression import Codec, compress
from kafscale.records.record import Record
from kafscale.records.varint import append_varint, append_varlong


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
    """One batch of these records, whose offsets must ascend; the first is the base offset."""
    if not records:
        raise InvalidRecordError("a batch needs at least one record")
    base_offset, base_timestamp_ms = records[0].offset, records[0].timestamp_ms
    plain = bytearray()
    offset_before = base_offset - 1
    for record in records:
        if record.offset <= offset_before:
            raise InvalidRecordError(f"offset {record.offset} comes after {offset_before}")
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
        0,  # The checksum can be written only when all it covers is in place.
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


def _append_record(
    output: bytearray, record: Record, base_offset: int, base_timestamp_ms: int
) -> None:
    fields = bytearray(1)  # The attributes of a record: a byte that Kafka has not used so far.
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
