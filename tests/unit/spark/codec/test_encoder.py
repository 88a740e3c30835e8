"""Encoded batches read back as the same records."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.client.partitioner import murmur2
from kafscale.errors import InvalidRequestError
from kafscale.records import BatchView, Codec, Header, Record, iterate
from kafscale.spark.codec.columns import ALL_WITH_HEADERS
from kafscale.spark.codec.encoder import Encoder

bytes_or_null = st.none() | st.binary(max_size=40)
times = st.integers(-(2**50), 2**50)
headers = st.lists(st.builds(Header, st.text(max_size=10), bytes_or_null), max_size=3).map(tuple)
records = st.lists(
    st.builds(Record, st.just(0), times, bytes_or_null, bytes_or_null, headers), max_size=30
)


def columns_of(records):
    schema = ALL_WITH_HEADERS.schema
    return pa.RecordBatch.from_arrays(
        [
            pa.array([record.key for record in records], pa.binary()),
            pa.array([record.value for record in records], pa.binary()),
            pa.array([record.timestamp_ms * 1000 for record in records]).cast(
                schema.field("timestamp").type
            )
            if records
            else pa.array([], schema.field("timestamp").type),
            pa.array(
                [
                    [{"key": header.key, "value": header.value} for header in record.headers]
                    or None
                    for record in records
                ],
                schema.field("headers").type,
            ),
        ],
        names=["key", "value", "timestamp", "headers"],
    )


def read(batches):
    result = []
    for batch in batches:
        view = BatchView(batch)
        view.validate()
        result += [Record(0, *fields_of(record)[1:]) for record in iterate(view)]
    return result


def fields_of(record):
    return (record.offset, record.timestamp_ms, record.key, record.value, record.headers)


def all_rows(records):
    return np.arange(len(records))


@given(records, st.sampled_from(Codec), st.integers(1, 500))
def test_encoded_records_read_back_equal(records, codec, batch_bytes):
    batches = Encoder(columns_of(records)).batches(all_rows(records), codec, batch_bytes)
    assert read(batches) == records


@given(records, st.data())
def test_batches_hold_the_chosen_rows_with_offsets_from_zero(records, data):
    chosen = [row for row in range(len(records)) if data.draw(st.booleans())]
    encoder = Encoder(columns_of(records))
    batches = list(encoder.batches(np.array(chosen, np.int64), Codec.NONE, 100))
    assert read(batches) == [records[row] for row in chosen]
    for batch in batches:
        offsets = [record.offset for record in iterate(BatchView(batch))]
        assert offsets == list(range(len(offsets)))


@given(records, st.integers(0, 5), st.integers(0, 5))
def test_encoder_accepts_slices_of_arrow_batches(records, start, count):
    part = columns_of(records).slice(start, count)
    batches = Encoder(part).batches(np.arange(part.num_rows), Codec.NONE)
    assert read(batches) == records[start : start + count]


@given(records)
def test_encoder_appends_the_extra_header_to_every_record(records):
    extra_headers = pa.array([f"orders/0/{row}" for row in range(len(records))], pa.string())
    batches = Encoder(columns_of(records), "source", extra_headers).batches(
        all_rows(records), Codec.LZ4
    )
    for row, record in enumerate(read(batches)):
        extra = Header("source", f"orders/0/{row}".encode())
        assert record.headers == (*records[row].headers, extra)


@given(st.lists(bytes_or_null, min_size=1), st.integers(1, 100))
def test_partitions_match_kafkas_default_partitioner(keys, count):
    records = [Record(0, 0, key, b"") for key in keys]
    own = np.arange(len(keys), dtype=np.int32)
    partitions = Encoder(columns_of(records)).partitions(count, own)
    assert partitions.tolist() == [
        own[row] % count if key is None else (murmur2(key) & 0x7FFFFFFF) % count
        for row, key in enumerate(keys)
    ]


def test_a_large_record_gets_its_own_batch():
    records = [Record(0, 5, b"key", bytes(1 << 20)), Record(0, 6, b"key", b"small")]
    batches = list(Encoder(columns_of(records)).batches(all_rows(records), Codec.NONE, 1000))
    assert [BatchView(batch).count for batch in batches] == [1, 1]
    assert read(batches) == records


@given(records, st.sampled_from(Codec), st.integers(1, 500), st.integers(1, 400))
def test_batches_of_several_records_keep_the_maximum(records, codec, batch_bytes, bytes_max):
    encoder = Encoder(columns_of(records))
    batches = list(encoder.batches(all_rows(records), codec, batch_bytes, bytes_max))
    assert read(batches) == records
    assert all(len(batch) <= bytes_max for batch in batches if BatchView(batch).count > 1)


def test_encoder_accepts_text_and_rejects_numbers():
    columns = columns_of([Record(0, 1, b"", "é".encode())])
    text = columns.set_column(1, "value", pa.array(["é"]))
    assert read(Encoder(text).batches(np.arange(1), Codec.NONE))[0].value == "é".encode()
    with pytest.raises(InvalidRequestError, match="value has type int64"):
        Encoder(columns.set_column(1, "value", pa.array([1])))


def test_encoder_rejects_null_timestamps():
    columns = columns_of([Record(0, 1, b"", b"")])
    nothing = pa.array([None], columns.schema.field("timestamp").type)
    with pytest.raises(InvalidRequestError, match="null timestamp"):
        Encoder(columns.set_column(2, "timestamp", nothing))
