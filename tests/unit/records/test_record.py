"""Reading records: round trips, and corrupt or random input."""

import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafscale.errors import BatchTooLargeError, InvalidRecordError, RecordsError
from kafscale.records import (
    BatchView,
    Codec,
    Header,
    Record,
    TimestampType,
    build,
    inflate,
    iterate,
)
from kafscale.records.batch import HEADER_BYTES
from kafscale.records.record import append_varint, append_varlong, read_varint, read_varlong
from unit.records.examples import RECORDS, example, record_lists, rewritten

every_codec = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)


def with_payload(payload: bytes, count: int = 1) -> BatchView:
    """A batch with this payload and a valid header and checksum."""
    data = bytearray(example().buffer[:HEADER_BYTES]) + payload
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    batch = rewritten(BatchView(data), 57, ">i", count)
    return rewritten(batch, 23, ">i", max(count, 1) - 1)


def record_bytes(body: str) -> bytes:
    """A record with these hexadecimal fields and the correct length."""
    fields = bytes.fromhex(body)
    return bytes((2 * len(fields),)) + fields


@every_codec
def test_inflate_is_independent_of_the_codec(codec: Codec) -> None:
    assert inflate(example(codec=codec)) == example().payload


@every_codec
def test_inflate_respects_the_limit(codec: Codec) -> None:
    size = len(example().payload)
    assert len(inflate(example(codec=codec), decompressed_bytes_max=size)) == size
    with pytest.raises(BatchTooLargeError):
        inflate(example(codec=codec), decompressed_bytes_max=size - 1)


@every_codec
@given(records=record_lists())
@settings(max_examples=60)
def test_round_trip(codec: Codec, records: list[Record]) -> None:
    batch = BatchView(build(records, codec=codec))
    batch.validate()
    assert list(iterate(batch)) == records


def test_log_append_time_replaces_the_timestamp_of_every_record() -> None:
    batch = BatchView(build(RECORDS, timestamp_type=TimestampType.LOG_APPEND_TIME))
    assert {record.timestamp_ms for record in iterate(batch)} == {batch.max_timestamp_ms}


def test_gaps_left_by_compaction_are_read() -> None:
    records = [Record(10, 1, b"a", b"1"), Record(17, 2, b"b", b"2"), Record(30, 3, b"c", b"3")]
    batch = BatchView(build(records))
    assert (batch.count, batch.last_offset_delta) == (3, 20)
    assert list(iterate(batch)) == records


def test_batch_emptied_by_compaction_is_read() -> None:
    assert list(iterate(with_payload(b"", count=0))) == []


def test_values_are_copies_that_outlive_the_buffer() -> None:
    batch = example()
    records = list(iterate(batch))
    batch.buffer[HEADER_BYTES:] = bytes(len(batch) - HEADER_BYTES)
    assert records == list(RECORDS)


def test_invalid_utf8_in_a_header_key_is_replaced() -> None:
    batch = with_payload(record_bytes("00 00 00 01 01 02 04 ff68 01"))
    (record,) = iterate(batch)
    assert record.headers == (Header("\N{REPLACEMENT CHARACTER}h", None),)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (record_bytes("00 00 00 01 0261 00")[:-1], "does not fit its batch"),
        (record_bytes("00 00 00 01 01 00") + b"\x00", "extra bytes after the last record"),
        (b"\x01" + bytes(8), "a record of -1 bytes"),
        (b"\x00" + bytes(8), "differ by"),
        (record_bytes("00 00 00 03 01 00 00"), "a field of -2 bytes"),
        (record_bytes("00 00 00 01 03 00 00"), "a field of -2 bytes"),
        (record_bytes("00 00 00 fe01 01 00"), "a field of 127 bytes"),
        (record_bytes("00 00 00 01 01 01"), "header count -1"),
        (record_bytes("00 00 00 01 01 02"), "header count 1"),
        (record_bytes("00 00 00 01 01 feffffff0f"), "header count 2147483647"),
        (record_bytes("00 00 00 01 01 02 01 01"), "header key is null"),
        (record_bytes("00 00 00 01 01 02 03 01"), "a field of -2 bytes"),
        (record_bytes("00 00 00 01 01 02 00 03"), "a field of -2 bytes"),
        (record_bytes("00 00 00 01 01 00 00"), "differ by -1"),
        (record_bytes("00 00 01 01 01 00"), "offset delta -1"),
        (record_bytes("00 00 02 01 01 00"), "offset delta 1 exceeds 0"),
        (record_bytes("00 00 ffffffffff01 01 01 00"), "exceeds 32 bits"),
        (record_bytes("00 feffffffffffffffff01 00 01 01 00"), "does not fit 64 bits"),
    ],
)
def test_each_violation_is_named(payload: bytes, message: str) -> None:
    with pytest.raises(InvalidRecordError, match=message):
        list(iterate(with_payload(payload)))


@pytest.mark.parametrize("count", [-1, 5, 2**31 - 1])
def test_impossible_record_count_is_rejected_at_once(count: int) -> None:
    payload = record_bytes("00 00 00 01 01 00") * 4
    with pytest.raises(InvalidRecordError, match=f"record count {count} in a batch of 28 bytes"):
        next(iterate(with_payload(payload, count)))


def test_fewer_records_than_counted_are_rejected() -> None:
    batch = rewritten(example(), 57, ">i", 5)
    with pytest.raises(InvalidRecordError, match="end"):
        list(iterate(batch))


def test_decompression_bomb_is_rejected() -> None:
    batch = BatchView(build([Record(0, 0, None, bytes(16_000_000))], codec=Codec.ZSTD))
    assert len(batch) < 10_000
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLargeError):
            list(iterate(batch, decompressed_bytes_max=1_000_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


@every_codec
def test_every_truncated_payload_raises_a_records_error(codec: Codec) -> None:
    """Half a batch never passes for a whole one, even where the header was made to fit."""
    payload = bytes(example(codec=codec).payload)
    for cut in range(len(payload)):
        batch = with_payload(payload[:cut], count=len(RECORDS))
        batch = rewritten(batch, 21, ">h", codec)
        with pytest.raises(RecordsError):
            list(iterate(batch, decompressed_bytes_max=100_000))


@every_codec
@given(position=st.integers(0, 10_000), bit=st.integers(0, 7))
@settings(max_examples=200)
def test_flipped_bit_raises_a_records_error_or_reads_consistently(
    codec: Codec, position: int, bit: int
) -> None:
    batch = example(codec=codec)
    position = 17 + position % (len(batch) - 17)
    batch.buffer[position] ^= 1 << bit
    try:
        records = list(iterate(batch, decompressed_bytes_max=100_000))
    except RecordsError:
        return
    assert len(records) == batch.count
    assert all(batch.base_offset <= record.offset <= batch.last_offset for record in records)


@given(payload=st.binary(max_size=120), count=st.integers(-2, 20))
@settings(max_examples=300)
def test_random_bytes_raise_only_records_errors(payload: bytes, count: int) -> None:
    with suppress(RecordsError):
        assert len(list(iterate(with_payload(payload, count)))) == count


GOLDEN = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (8192, "808001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "encoded"), GOLDEN)
def test_known_values_have_known_bytes(value: int, encoded: str) -> None:
    output = bytearray()
    append_varint(output, value)
    assert output.hex() == encoded
    assert read_varint(bytes(output), 0) == (value, len(output))


@pytest.mark.parametrize(
    ("value", "encoded"), [(2**63 - 1, "feffffffffffffffff01"), (-(2**63), "ffffffffffffffffff01")]
)
def test_widest_varlongs_take_ten_bytes(value: int, encoded: str) -> None:
    output = bytearray()
    append_varlong(output, value)
    assert output.hex() == encoded
    assert read_varlong(bytes(output), 0) == (value, 10)


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=4), st.binary(max_size=4))
def test_varint_round_trip_between_other_bytes(value: int, before: bytes, after: bytes) -> None:
    output = bytearray(before)
    append_varint(output, value)
    end = len(output)
    assert read_varint(bytes(output + after), len(before)) == (value, end)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlong_round_trip(value: int) -> None:
    output = bytearray()
    append_varlong(output, value)
    assert read_varlong(bytes(output), 0) == (value, len(output))


def test_overlong_encoding_is_read() -> None:
    assert read_varint(bytes.fromhex("828000"), 0) == (1, 3)


@pytest.mark.parametrize("encoded", ["", "80", "ffff", "ffffffff"])
def test_truncated_varint_is_rejected(encoded: str) -> None:
    with pytest.raises(InvalidRecordError, match="past the end"):
        read_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["808080808000", "ffffffff1f", "ffffffff7f", "ff" * 100])
def test_more_than_32_bits_are_rejected(encoded: str) -> None:
    with pytest.raises(InvalidRecordError, match="32 bits"):
        read_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["80" * 10 + "00", "ff" * 9 + "02", "ff" * 100])
def test_more_than_64_bits_are_rejected(encoded: str) -> None:
    with pytest.raises(InvalidRecordError, match="64 bits"):
        read_varlong(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_varint_out_of_range_is_not_written(value: int) -> None:
    with pytest.raises(InvalidRecordError, match="does not fit"):
        append_varint(bytearray(), value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_varlong_out_of_range_is_not_written(value: int) -> None:
    with pytest.raises(InvalidRecordError, match="does not fit"):
        append_varlong(bytearray(), value)
