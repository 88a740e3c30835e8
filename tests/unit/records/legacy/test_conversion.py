"""Conversion between message sets and batches."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doubles.end_marker import ControlType, build_end_marker
from kafscale.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidRecordError,
    InvalidTimestampError,
    UnsupportedFormatError,
)
from kafscale.records import (
    BatchView,
    Codec,
    Record,
    TimestampType,
    build,
    down_convert,
    iterate,
    recompress,
    split,
    up_convert,
)
from kafscale.records.legacy.message_set import read
from unit.records.examples import LEGACY_CODECS, RECORDS, example, message, record_lists, wrapper

every_magic = pytest.mark.parametrize("magic", [0, 1])


@every_magic
@given(records=record_lists(), codec=st.sampled_from(Codec))
@settings(max_examples=60)
def test_down_and_up_conversion_keeps_all_supported_fields(
    magic: int, records: list[Record], codec: Codec
) -> None:
    lowered = down_convert([BatchView(build(records, codec=codec))], magic)
    assert [message.record.offset for message in read(lowered)] == [
        record.offset for record in records
    ]
    batch = BatchView(up_convert(lowered))
    batch.validate()
    assert list(iterate(batch)) == [
        Record(index, record.timestamp_ms if magic else -1, record.key, record.value)
        for index, record in enumerate(records)
    ]


# --- up -------------------------------------------------------------------------------------------


@every_magic
def test_several_messages_become_one_batch_with_offsets_from_zero(magic: int) -> None:
    data = message(magic, 50, b"a") + message(magic, 50, b"b") + message(magic, 0, b"c", key=b"k")
    batch = BatchView(up_convert(data))
    batch.validate()
    assert [(record.offset, record.value) for record in iterate(batch)] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
    ]
    assert batch.codec is Codec.NONE
    assert batch.producer_id == -1


def test_magic_0_has_no_timestamps() -> None:
    batch = BatchView(up_convert(message(0, 0, b"a")))
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (-1, -1)
    assert batch.timestamp_type is TimestampType.CREATE_TIME


@every_magic
@pytest.mark.parametrize("codec", LEGACY_CODECS, ids=lambda codec: codec.name)
def test_codec_of_the_wrapper_is_kept(magic: int, codec: Codec) -> None:
    inner = message(magic, 0, b"a") + message(magic, 1, b"b")
    batch = BatchView(up_convert(message(magic, 0, b"z") + wrapper(magic, codec, 1, inner)))
    batch.validate()
    assert batch.codec is codec
    assert [record.value for record in iterate(batch)] == [b"z", b"a", b"b"]


def test_of_several_codecs_the_last_is_kept() -> None:
    data = (
        wrapper(1, Codec.GZIP, 0, message(1, 0, b"a"))
        + wrapper(1, Codec.LZ4, 1, message(1, 0, b"b"))
        + message(1, 2, b"c")
    )
    batch = BatchView(up_convert(data))
    assert batch.codec is Codec.LZ4
    assert [record.value for record in iterate(batch)] == [b"a", b"b", b"c"]


def test_log_append_time_of_a_producer_is_rejected_by_validation() -> None:
    stamped = message(1, 0, b"a", attributes=0x08)
    with pytest.raises(InvalidTimestampError):
        BatchView(up_convert(stamped)).validate()
    BatchView(up_convert(stamped + message(1, 1, b"b"))).validate()


def test_empty_set_is_invalid() -> None:
    with pytest.raises(InvalidRecordError, match="empty message set"):
        up_convert(b"")


def test_truncated_set_is_corrupt() -> None:
    with pytest.raises(CorruptBatchError):
        up_convert(message(1, 0, b"a") + message(1, 1, b"b")[:-1])


def test_batch_is_not_a_message_set() -> None:
    with pytest.raises(UnsupportedFormatError, match="magic 2"):
        up_convert(build(RECORDS))


def test_timestamps_too_far_apart_for_one_batch_are_invalid() -> None:
    data = message(1, 0, b"a", timestamp_ms=-(2**63)) + message(1, 1, b"b", timestamp_ms=2**63 - 1)
    with pytest.raises(InvalidRecordError, match="does not fit"):
        up_convert(data)


def test_up_conversion_limits_the_decompressed_size() -> None:
    data = wrapper(1, Codec.GZIP, 0, message(1, 0, bytes(100_000)))
    assert len(data) < 1000
    with pytest.raises(BatchTooLargeError):
        up_convert(data, decompressed_bytes_max=50_000)


# --- down -----------------------------------------------------------------------------------------


@every_magic
@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
def test_down_converted_sets_are_not_compressed(magic: int, codec: Codec) -> None:
    messages = list(read(down_convert([example(codec=codec)], magic)))
    assert {message.magic for message in messages} == {magic}
    assert {message.codec for message in messages} == {Codec.NONE}
    assert [message.record.value for message in messages] == [record.value for record in RECORDS]


def test_log_append_time_is_kept_in_magic_1() -> None:
    batch = example()
    batch.stamp_append_time(1_800_000_000_000)
    messages = list(read(down_convert([batch], 1)))
    assert {message.timestamp_type for message in messages} == {TimestampType.LOG_APPEND_TIME}
    assert {message.record.timestamp_ms for message in messages} == {1_800_000_000_000}


def test_control_batches_are_skipped() -> None:
    marker = build_end_marker(
        ControlType.COMMIT, offset=4, timestamp_ms=0, producer_id=1, producer_epoch=0
    )
    after = example()
    after.stamp(5, 0)
    lowered = down_convert([example(), BatchView(marker), after], 1)
    assert [message.record.offset for message in read(lowered)] == [0, 1, 2, 3, 5, 6, 7, 8]


def test_records_before_the_first_offset_are_skipped() -> None:
    lowered = down_convert([example()], 0, first_offset=2)
    assert [message.record.offset for message in read(lowered)] == [2, 3]


def test_down_conversion_limits_the_decompressed_size() -> None:
    with pytest.raises(BatchTooLargeError):
        down_convert([example(codec=Codec.ZSTD)], 1, decompressed_bytes_max=100)


def test_offsets_of_a_log_are_kept() -> None:
    log = bytearray()
    for base_offset in (0, 4, 8):
        batch = example()
        batch.stamp(base_offset, 1)
        log += recompress(batch, Codec.LZ4)
    lowered = down_convert(split(log), 1)
    assert [message.record.offset for message in read(lowered)] == list(range(12))
