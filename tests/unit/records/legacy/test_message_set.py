"""Message sets of magic 0 and 1: plain, compressed, truncated, corrupt, and limited."""

from collections.abc import Callable
from contextlib import suppress
from struct import pack
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidRecordError,
    RecordsError,
    UnsupportedCodecError,
    UnsupportedFormatError,
)
from kafscale.records import Codec, Record, TimestampType
from kafscale.records.compression import compress
from kafscale.records.legacy.message_set import append, read
from unit.records.examples import LEGACY_CODECS, message, wrapper

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
