"""Compares record batches with kio, which supports no compression and only whole seconds."""

import datetime as dt
import io

from kio.records import readers, writers
from kio.records.schema import NewRecordBatch, RecordHeader
from kio.records.schema import Record as KioRecord
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from conformance.records.samples import MANY, MIXED
from kafscale.records import BatchView, Header, Record, build, iterate

RECORDS = [
    Record(offset, record.timestamp_ms // 1000 * 1000, record.key, record.value, record.headers)
    for offset, record in enumerate(MIXED + MANY)
]


def theirs(record: Record) -> KioRecord:
    moment = dt.datetime.fromtimestamp(record.timestamp_ms / 1000, dt.UTC)
    return KioRecord(
        attributes=i8(0),
        timestamp=TZAwareMicros.parse(moment),
        offset=i64(record.offset),
        key=record.key,
        value=record.value,
        headers=tuple(
            RecordHeader(key=header.key.encode(), value=header.value) for header in record.headers
        ),
    )


def ours(record: KioRecord) -> Record:
    headers = tuple(Header((header.key or b"").decode(), header.value) for header in record.headers)
    time_ms = int(record.timestamp.timestamp()) * 1000
    return Record(record.offset, time_ms, record.key, record.value, headers)


def test_kio_batch_is_valid_and_identical_to_ours() -> None:
    output = io.BytesIO()
    new_batch = NewRecordBatch(
        producer_id=i64(12),
        producer_epoch=i16(3),
        partition_leader_epoch=i32(4),
        base_sequence=i32(5),
        records=tuple(theirs(record) for record in RECORDS),
        attributes=i16(0x10),
    )
    writers.write_batch(output, new_batch)
    batch = BatchView(output.getvalue())
    batch.validate()
    assert list(iterate(batch)) == RECORDS
    built = build(
        RECORDS,
        producer_id=12,
        producer_epoch=3,
        leader_epoch=4,
        base_sequence=5,
        transactional=True,
    )
    assert output.getvalue() == built


def test_kio_reads_our_batch() -> None:
    data = bytes(build(RECORDS, producer_id=12, producer_epoch=3, base_sequence=5))
    batch, size = readers.read_batch(data, 0)
    assert size == len(data)
    assert [ours(record) for record in batch.records] == RECORDS
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (12, 3, 5)
    assert batch.last_offset_delta == len(RECORDS) - 1
