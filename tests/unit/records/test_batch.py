"""`BatchView`: fields, validation, offset assignment, and splitting."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordsError,
    UnsupportedCodecError,
    UnsupportedFormatError,
)
from kafscale.records import (
    BatchView,
    Codec,
    Header,
    Record,
    TimestampType,
    build,
    iterate,
    single_batch,
    split,
)
from kafscale.records.batch import RECORDS_MAX
from kafscale.records.message_set import append
from unit.records.examples import RECORDS, example, rewritten

GOLDEN = bytes.fromhex(
    "0000000000000007"  # base offset
    "0000003d"  # length: 73 bytes less 12
    "00000003"  # leader epoch
    "02"  # magic
    "ecc46c11"  # CRC-32C
    "0000"  # attributes
    "00000000"  # last offset delta
    "0000018bcfe56800"  # base timestamp
    "0000018bcfe56800"  # max timestamp
    "ffffffffffffffff"  # producer id
    "ffff"  # producer epoch
    "ffffffff"  # base sequence
    "00000001"  # count
    "16"  # length of the record: 11
    "00"  # attributes
    "00"  # timestamp delta
    "00"  # offset delta
    "026b"  # key "k"
    "0276"  # value "v"
    "02"  # one header
    "026801"  # "h", null
)


def test_hand_written_bytes_are_read_and_built() -> None:
    batch = BatchView(GOLDEN)
    batch.validate()
    record = Record(7, 1_700_000_000_000, b"k", b"v", (Header("h", None),))
    assert list(iterate(batch)) == [record]
    assert build([record], leader_epoch=3) == GOLDEN


def test_every_field_is_read_from_its_position() -> None:
    batch = example(
        codec=Codec.GZIP,
        producer_id=2**40,
        producer_epoch=12,
        base_sequence=34,
        leader_epoch=56,
        transactional=True,
    )
    assert batch.base_offset == 0
    assert batch.last_offset == batch.last_offset_delta == 3
    assert batch.next_offset == 4
    assert batch.count == 4
    assert batch.leader_epoch == 56
    assert batch.attributes == 0x11
    assert batch.codec is Codec.GZIP
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert batch.is_transactional
    assert not batch.is_control
    assert batch.base_timestamp_ms == RECORDS[0].timestamp_ms
    assert batch.max_timestamp_ms == RECORDS[1].timestamp_ms
    assert batch.producer_id == 2**40
    assert batch.producer_epoch == 12
    assert batch.base_sequence == 34
    assert batch.last_sequence == 37
    assert batch.checksum == int.from_bytes(batch.buffer[17:21], "big")
    assert len(batch.payload) == len(batch) - 61
    assert repr(batch) == f"<BatchView offsets 0..3 count 4 bytes {len(batch)}>"


@pytest.mark.parametrize(
    ("base", "last"), [(-1, -1), (0, 3), (2**31 - 4, 2**31 - 1), (2**31 - 1, 2), (2**31 - 2, 1)]
)
def test_sequences_wrap_after_the_last(base: int, last: int) -> None:
    assert example(base_sequence=base).last_sequence == last


# --- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
def test_valid_batch_is_accepted(codec: Codec) -> None:
    batch = example(codec=codec)
    batch.validate(size_bytes_max=len(batch))


def test_batch_with_another_base_offset_is_valid() -> None:
    BatchView(build([Record(500, 1, None, b"x")])).validate()


def test_size_limit_counts_the_whole_batch() -> None:
    batch = example()
    with pytest.raises(BatchTooLargeError, match=str(len(batch))):
        batch.validate(size_bytes_max=len(batch) - 1)


@pytest.mark.parametrize("size", [0, 11, 16, 17, 60])
def test_batch_shorter_than_a_header_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptBatchError, match="shorter"):
        BatchView(bytes(size))


@pytest.mark.parametrize("length", [-1, 0, 48, 49, 2**31 - 1])
def test_wrong_length_is_corrupt(length: int) -> None:
    data = bytearray(example().buffer)
    data[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatchError, match=str(length)):
        BatchView(data)
    with pytest.raises(CorruptBatchError):
        single_batch(data)


@pytest.mark.parametrize("magic", [0, 1])
def test_older_magic_is_unsupported(magic: int) -> None:
    data = bytearray(example().buffer)
    data[16] = magic
    with pytest.raises(UnsupportedFormatError, match=str(magic)):
        BatchView(data)


@pytest.mark.parametrize("magic", [3, 127, 128, 255])
def test_unknown_magic_is_corrupt(magic: int) -> None:
    data = bytearray(example().buffer)
    data[16] = magic
    with pytest.raises(CorruptBatchError, match="unknown"):
        BatchView(data)


@given(position=st.integers(17, 10_000), bit=st.integers(0, 7))
def test_every_flipped_bit_under_the_checksum_is_detected(position: int, bit: int) -> None:
    batch = example(codec=Codec.LZ4)
    position = 17 + (position - 17) % (len(batch) - 17)
    batch.buffer[position] ^= 1 << bit
    with pytest.raises(CorruptBatchError, match="CRC"):
        batch.validate()


@pytest.mark.parametrize("count", [0, -1, -(2**31)])
def test_batch_without_records_is_invalid(count: int) -> None:
    with pytest.raises(InvalidRecordError, match="record count"):
        rewritten(example(), 57, ">i", count).validate()


def test_batch_without_records_is_invalid_even_if_its_offsets_agree() -> None:
    with pytest.raises(InvalidRecordError, match="record count 0"):
        rewritten(rewritten(example(), 57, ">i", 0), 23, ">i", -1).validate()


@pytest.mark.parametrize("count", [1, 3, 5, 2**31 - 1])
def test_count_that_contradicts_the_offsets_is_invalid(count: int) -> None:
    with pytest.raises(InvalidRecordError, match="last offset delta"):
        rewritten(example(), 57, ">i", count).validate()


@pytest.mark.parametrize("delta", [-1, 0, 4, 2**31 - 1, -(2**31)])
def test_offsets_that_contradict_the_count_are_invalid(delta: int) -> None:
    with pytest.raises(InvalidRecordError, match="last offset delta"):
        rewritten(example(), 23, ">i", delta).validate()


@pytest.mark.parametrize(
    ("codec", "count", "reason"),
    [
        (Codec.NONE, 2**31 - 1, "records cannot have"),
        (Codec.NONE, 100, "records cannot have"),
        (Codec.ZSTD, RECORDS_MAX + 1, "exceeds the limit of 1000000"),
    ],
)
def test_absurd_counts_are_invalid(codec: Codec, count: int, reason: str) -> None:
    """One small batch must not say that a topic has billions of records."""
    batch = rewritten(BatchView(build(RECORDS, codec=codec)), 57, ">i", count)
    batch = rewritten(batch, 23, ">i", count - 1)
    with pytest.raises(InvalidRecordError, match=reason):
        batch.validate()
    batch.validate(from_producer=False)


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codec_is_unsupported(number: int) -> None:
    with pytest.raises(UnsupportedCodecError, match=str(number)):
        rewritten(example(), 21, ">h", number).validate()


def test_reserved_attribute_bits_are_accepted() -> None:
    rewritten(example(), 21, ">h", 0x7FC0).validate()


@pytest.mark.parametrize("position", [27, 35])
@pytest.mark.parametrize("timestamp_ms", [-1, -(2**63), 2**63 - 1])
def test_any_timestamps_are_accepted(position: int, timestamp_ms: int) -> None:
    rewritten(example(), position, ">q", timestamp_ms).validate()


def test_only_brokers_may_write_control_records() -> None:
    batch = rewritten(example(), 21, ">h", 0x20)
    with pytest.raises(InvalidRecordError, match="control"):
        batch.validate()
    batch.validate(from_producer=False)


def test_only_brokers_may_set_log_append_time() -> None:
    batch = rewritten(example(), 21, ">h", 0x08)
    with pytest.raises(InvalidTimestampError):
        batch.validate()
    batch.validate(from_producer=False)


@pytest.mark.parametrize("producer_id", [0, 5])
def test_idempotent_producer_must_send_sequences(producer_id: int) -> None:
    batch = example(producer_id=producer_id, producer_epoch=0, base_sequence=-1)
    with pytest.raises(InvalidRecordError, match="sequence"):
        batch.validate()
    example(producer_id=producer_id, producer_epoch=0, base_sequence=0).validate()


# --- stamps ---------------------------------------------------------------------------------------


@given(
    base_offset=st.integers(0, 2**63 - 1 - 3),
    leader_epoch=st.integers(-1, 2**31 - 1),
    codec=st.sampled_from(Codec),
)
def test_stamp_sets_offsets_and_keeps_the_checksum(
    base_offset: int, leader_epoch: int, codec: Codec
) -> None:
    batch = example(codec=codec)
    checksum, covered = batch.checksum, bytes(batch.buffer[16:])
    batch.stamp(base_offset, leader_epoch)
    batch.validate()
    assert (batch.base_offset, batch.leader_epoch) == (base_offset, leader_epoch)
    assert batch.checksum == checksum
    assert batch.buffer[16:] == covered
    assert [record.offset for record in iterate(batch)] == list(range(base_offset, base_offset + 4))


def test_stamp_changes_the_underlying_buffer() -> None:
    data = build(RECORDS)
    BatchView(memoryview(data)).stamp(77, 1)
    assert int.from_bytes(data[:8], "big") == 77


def test_read_only_buffer_cannot_be_stamped() -> None:
    batch = BatchView(bytes(build(RECORDS)))
    with pytest.raises(TypeError, match="read-write"):
        batch.stamp(1, 1)


def test_stamp_append_time_applies_to_every_record() -> None:
    batch = example(codec=Codec.ZSTD, producer_id=9, producer_epoch=1, base_sequence=2)
    batch.stamp_append_time(1_800_000_000_000)
    batch.validate(from_producer=False)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.codec is Codec.ZSTD
    assert batch.max_timestamp_ms == 1_800_000_000_000
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 1, 2)
    assert {record.timestamp_ms for record in iterate(batch)} == {1_800_000_000_000}


# --- splitting ------------------------------------------------------------------------------------


def three() -> tuple[bytes, list[int]]:
    """Three batches in a row, and where each ends."""
    field = bytearray()
    ends = []
    for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY):
        field += example(codec=codec).buffer
        ends.append(len(field))
    return bytes(field), ends


def test_split_returns_all_batches() -> None:
    field, _ = three()
    batches = split(field)
    assert [batch.codec for batch in batches] == [Codec.NONE, Codec.GZIP, Codec.SNAPPY]
    assert b"".join(batch.buffer for batch in batches) == field


def test_split_batches_share_the_buffer() -> None:
    field = bytearray(three()[0])
    split(field)[1].stamp(99, 0)
    assert split(field)[1].base_offset == 99


def test_every_truncation_is_rejected_or_skips_the_last_batch() -> None:
    field, ends = three()
    for cut in range(len(field)):
        whole = sum(end <= cut for end in ends)
        assert len(split(field[:cut], partial_ok=True)) == whole
        if cut in {0, *ends}:
            assert len(split(field[:cut])) == whole
        else:
            with pytest.raises(CorruptBatchError, match="beyond"):
                split(field[:cut])


def test_invalid_length_is_not_a_partial_batch() -> None:
    field = bytearray(three()[0])
    field[8:12] = b"\x00\x00\x00\x05"
    with pytest.raises(CorruptBatchError, match="batch length 5"):
        split(field, partial_ok=True)


def test_single_batch_requires_exactly_one() -> None:
    data = build(RECORDS)
    assert single_batch(data).count == 4
    with pytest.raises(InvalidRecordError, match="2 batches"):
        single_batch(data + data)
    with pytest.raises(InvalidRecordError, match="0 batches"):
        single_batch(b"")
    with pytest.raises(CorruptBatchError):
        single_batch(data + b"\x00")


def test_short_message_of_an_old_format_is_unsupported_not_corrupt() -> None:
    field = bytearray()
    append(field, Record(0, -1, None, b"x"), 1, TimestampType.CREATE_TIME)
    with pytest.raises(UnsupportedFormatError):
        single_batch(field)


@given(st.binary(max_size=200))
def test_random_bytes_raise_only_records_errors(data: bytes) -> None:
    for partial_ok in (False, True):
        with suppress(RecordsError):
            split(data, partial_ok=partial_ok)


def test_huge_length_field_allocates_nothing() -> None:
    data = bytearray(example().buffer)
    data[8:12] = b"\x7f\xff\xff\xff"
    assert split(data, partial_ok=True) == []
