"""Message sets of magic 0 and 1: plain, compressed, truncated, corrupt, limited, converted."""

from collections.abc import Callable
from contextlib import suppress
from struct import pack
from zlib import crc32

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from doubles.end_marker import ControlType, build_end_marker
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
    Record,
    TimestampType,
    build,
    down_convert,
    iterate,
    recompress,
    split,
    up_convert,
)
from kafscale.records.compression import compress
from kafscale.records.message_set import append, fix_header_checksum, read, xxh32_short
from unit.records.examples import LEGACY_CODECS, RECORDS, example, message, record_lists, wrapper

GOLDEN_0 = bytes.fromhex(
    "0000000000000005"  # offset
    "00000010"  # size: 16
    "1fecd70a"  # CRC-32
    "00"  # magic
    "00"  # attributes
    "00000001"
    "6b"  # key "k"
    "00000001"
    "76"  # value "v"
)

every_magic = pytest.mark.parametrize("magic", [0, 1])
every_codec = pytest.mark.parametrize("codec", LEGACY_CODECS, ids=lambda codec: codec.name)


def records(data: bytes, **options: int) -> list[Record]:
    return [message.record for message in read(data, **options)]


def test_hand_written_bytes_are_read_and_written() -> None:
    (only,) = read(GOLDEN_0)
    assert only.record == Record(5, -1, b"k", b"v")
    assert (only.magic, only.codec) == (0, Codec.NONE)
    output = bytearray()
    append(output, only.record, 0, TimestampType.CREATE_TIME)
    assert output == GOLDEN_0


@every_magic
def test_keys_values_and_nulls_are_read(magic: int) -> None:
    data = (
        message(magic, 3, b"v", key=b"k")
        + message(magic, 4, None, key=b"")
        + message(magic, 9, b"", key=None)
    )
    time = 1000 if magic else -1
    assert records(data) == [
        Record(3, time, b"k", b"v"),
        Record(4, time, b"", None),
        Record(9, time, None, b""),
    ]


@every_magic
@given(
    record=st.builds(
        Record,
        offset=st.integers(0, 2**63 - 1),
        timestamp_ms=st.integers(-(2**63), 2**63 - 1),
        key=st.none() | st.binary(max_size=20),
        value=st.none() | st.binary(max_size=20),
    ),
    timestamp_type=st.sampled_from(TimestampType),
)
def test_round_trip(magic: int, record: Record, timestamp_type: TimestampType) -> None:
    output = bytearray()
    append(output, record, magic, timestamp_type)
    (only,) = read(output)
    if magic == 0:
        record, timestamp_type = replace(record, timestamp_ms=-1), TimestampType.CREATE_TIME
    assert only.record == record
    assert only.timestamp_type is timestamp_type


@every_codec
def test_inner_offsets_are_absolute_in_magic_0(codec: Codec) -> None:
    inner = message(0, 70, b"a") + message(0, 71, b"b")
    assert [record.offset for record in records(wrapper(0, codec, 71, inner))] == [70, 71]


@every_codec
def test_inner_offsets_are_relative_in_magic_1(codec: Codec) -> None:
    inner = message(1, 0, b"a") + message(1, 1, b"b") + message(1, 4, b"c")
    read_records = records(wrapper(1, codec, 104, inner))
    assert [record.offset for record in read_records] == [100, 101, 104]
    assert {record.timestamp_ms for record in read_records} == {1000}


def test_wrapper_at_offset_0_does_not_move_its_messages() -> None:
    inner = message(1, 0, b"a") + message(1, 1, b"b")
    assert [record.offset for record in records(wrapper(1, Codec.GZIP, 0, inner))] == [0, 1]


def test_log_append_time_of_a_wrapper_applies_to_its_messages() -> None:
    inner = message(1, 0, b"a") + message(1, 1, b"b")
    data = wrapper(1, Codec.GZIP, 1, inner, attributes=0x08)
    messages = list(read(data))
    assert {message.record.timestamp_ms for message in messages} == {9000}
    assert {message.timestamp_type for message in messages} == {TimestampType.LOG_APPEND_TIME}


def test_plain_and_compressed_messages_of_both_magics_can_be_mixed() -> None:
    data = (
        message(0, 0, b"a")
        + wrapper(1, Codec.SNAPPY, 2, message(1, 0, b"b") + message(1, 1, b"c"))
        + message(1, 3, b"d")
    )
    assert [record.value for record in records(data)] == [b"a", b"b", b"c", b"d"]
    assert [message.codec for message in read(data)] == [
        Codec.NONE,
        Codec.SNAPPY,
        Codec.SNAPPY,
        Codec.NONE,
    ]


def test_wrong_lz4_header_checksum_is_accepted_only_in_magic_0() -> None:
    """KAFKA-3160: the clients of magic 0 computed it over the wrong bytes."""
    for magic, refused in ((0, False), (1, True)):
        value = bytearray(compress(Codec.LZ4, message(magic, 0, b"a")))
        value[6] ^= 0xFF
        data = message(magic, 0, bytes(value), attributes=Codec.LZ4)
        if refused:
            with pytest.raises(CorruptBatchError):
                records(data)
        else:
            assert [record.value for record in records(data)] == [b"a"]


# --- refusals -------------------------------------------------------------------------------------


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes((data[position] ^ 1,)) + data[position + 1 :]


@every_magic
def test_every_flipped_bit_under_the_checksum_is_detected(magic: int) -> None:
    data = message(magic, 0, b"value", key=b"key")
    for position in range(12, len(data)):
        if position != 16:
            with pytest.raises(CorruptBatchError, match="CRC"):
                records(flipped(data, position))


@every_codec
@every_magic
def test_corrupt_inner_checksum_is_detected(magic: int, codec: Codec) -> None:
    inner = message(magic, 0, b"a") + flipped(message(magic, 1, b"bcd"), 12)
    with pytest.raises(CorruptBatchError, match="CRC"):
        records(wrapper(magic, codec, 1, inner))


@every_magic
def test_every_truncation_is_rejected_or_skips_the_last_message(magic: int) -> None:
    first, second = message(magic, 0, b"one"), message(magic, 1, b"two")
    data = first + second
    for cut in range(1, len(data)):
        whole = int(cut >= len(first))
        assert len(records(data[:cut], partial_ok=True)) == whole
        if cut != len(first):
            with pytest.raises(CorruptBatchError, match="beyond"):
                records(data[:cut])


def sized(size: int) -> bytes:
    return pack(">qi", 0, size) + bytes(40)


def resealed(body: bytes) -> bytes:
    return pack(">qi", 0, len(body) + 4) + pack(">I", crc32(body)) + body


@pytest.mark.parametrize(
    ("make", "error", "error_text"),
    [
        (lambda: sized(-1), CorruptBatchError, "message size -1"),
        (lambda: sized(13), CorruptBatchError, "message size 13"),
        (lambda: sized(2**31 - 1), CorruptBatchError, "beyond"),
        (lambda: message(2, 0, b"x"), UnsupportedFormatError, "magic 2"),
        (lambda: message(-1, 0, b"x"), UnsupportedFormatError, "magic -1"),
        (lambda: message(1, 0, b"x", attributes=4), UnsupportedCodecError, "zstd"),
        (lambda: message(1, 0, b"x", attributes=5), UnsupportedCodecError, "5"),
        (lambda: message(1, 0, None, attributes=1), InvalidRecordError, "no value"),
        (
            lambda: message(1, 0, b"junk", attributes=1),
            CorruptBatchError,
            "corrupt compressed records",
        ),
        (lambda: message(0, 0, b"junk", attributes=3), CorruptBatchError, "LZ4"),
        (lambda: wrapper(1, Codec.GZIP, 0, b""), InvalidRecordError, "no messages"),
        (
            lambda: wrapper(1, Codec.GZIP, 0, message(0, 0, b"x")),
            InvalidRecordError,
            "magic 0 in a wrapper",
        ),
        (
            lambda: wrapper(1, Codec.GZIP, 0, wrapper(1, Codec.GZIP, 0, message(1, 0, b"x"))),
            InvalidRecordError,
            "nested compressed messages",
        ),
        (lambda: wrapper(1, Codec.GZIP, 0, message(1, 0, b"x")[:-1]), CorruptBatchError, "beyond"),
        (
            lambda: resealed(bytes.fromhex("010000000000 00000000")),
            CorruptBatchError,
            "timestamp|length",
        ),
        (lambda: resealed(bytes.fromhex("0000fffffffe 00000000")), CorruptBatchError, "-2 bytes"),
        (lambda: resealed(bytes.fromhex("000000000000 00000001")), CorruptBatchError, "1 bytes"),
        (lambda: resealed(bytes.fromhex("000000000002 61620000")), CorruptBatchError, "length"),
        (
            lambda: resealed(bytes.fromhex("0000ffffffff ffffffff 00")),
            CorruptBatchError,
            "extra bytes",
        ),
    ],
)
def test_each_violation_has_its_error(
    make: Callable[[], bytes], error: type[RecordsError], error_text: str
) -> None:
    with pytest.raises(error, match=error_text):
        records(make())


@every_codec
def test_limit_applies_to_all_wrappers_together(codec: Codec) -> None:
    inner = message(1, 0, bytes(10_000))
    data = wrapper(1, codec, 0, inner) * 3
    assert len(records(data, decompressed_bytes_max=3 * len(inner))) == 3
    with pytest.raises(BatchTooLargeError):
        records(data, decompressed_bytes_max=3 * len(inner) - 1)


@given(data=st.binary(max_size=100))
def test_random_bytes_raise_only_records_errors(data: bytes) -> None:
    for partial_ok in (False, True):
        with suppress(RecordsError):
            records(data, partial_ok=partial_ok)


@every_magic
@every_codec
@given(junk=st.binary(max_size=60), position=st.integers(0, 1000), bit=st.integers(0, 7))
@settings(max_examples=100)
def test_corrupt_wrappers_raise_only_records_errors(
    magic: int, codec: Codec, junk: bytes, position: int, bit: int
) -> None:
    """The outer checksum holds, so that the noise reaches the decompressor and the inner set."""
    value = bytearray(compress(codec, message(magic, 0, b"text " * 20) + junk))
    value[position % len(value)] ^= 1 << bit
    for content in (bytes(value), junk):
        with suppress(RecordsError):
            records(message(magic, 0, content, attributes=codec), decompressed_bytes_max=100_000)


@pytest.mark.parametrize(
    ("data", "checksum"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)]
)
def test_xxh32_has_its_published_values(data: bytes, checksum: int) -> None:
    assert xxh32_short(data) == checksum


def frame() -> bytes:
    return bytes(cramjam.lz4.compress(b"some text, some text"))


def test_correct_header_is_unchanged() -> None:
    assert fix_header_checksum(frame()) == frame()


def test_header_with_a_content_size_is_supported() -> None:
    # FLG with the content size bit; the checksum then comes eight bytes later.
    sized = bytes.fromhex("04224d18 68 40 0100000000000000") + b"\x00" + b"rest"
    mended = fix_header_checksum(sized)
    assert mended[:14] == sized[:14]
    assert mended[14] == xxh32_short(sized[4:14]) >> 8 & 0xFF
    assert mended[15:] == b"rest"


def test_wrong_checksum_of_old_clients_is_fixed() -> None:
    wrong = bytearray(frame())
    wrong[6] = xxh32_short(bytes(wrong[:6])) >> 8 & 0xFF  # over the magic too: KAFKA-3160.
    assert wrong != frame()
    assert fix_header_checksum(bytes(wrong)) == frame()


@pytest.mark.parametrize("data", [b"", b"\x04\x22\x4d\x18", b"not a frame at all"])
def test_invalid_frame_is_rejected(data: bytes) -> None:
    with pytest.raises(CorruptBatchError, match="LZ4"):
        fix_header_checksum(data)


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


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_messages_of_a_producer_are_limited(codec):
    messages = b"".join(message(1, offset, b"a") for offset in range(11))
    data = messages if codec is Codec.NONE else wrapper(1, codec, 10, messages)
    assert BatchView(up_convert(data, messages_max=11)).count == 11
    with pytest.raises(BatchTooLargeError, match="the limit of 10 messages"):
        up_convert(data, messages_max=10)
    assert len(list(read(data))) == 11
