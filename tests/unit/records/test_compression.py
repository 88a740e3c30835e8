"""Codecs: round trips, both snappy framings, corrupt input, and the size limit."""

import gzip
import tracemalloc
from contextlib import suppress
from random import Random

import cramjam
import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafscale.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    RecordsError,
    UnsupportedCodecError,
)
from kafscale.records.compression import Codec, codec_of, compress, decompress

LZ4_FLAGS = ("block_linked", "block_checksum", "content_checksum")
TEXT = b"a stream of records, " * 5000
COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]

every_codec = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
compressing_codec = pytest.mark.parametrize("codec", COMPRESSING, ids=lambda codec: codec.name)


def bomb(codec: Codec, size_bytes: int) -> bytes:
    """Compressed zeros."""
    return compress(codec, bytes(size_bytes))


@every_codec
@given(data=st.binary(max_size=200) | st.just(TEXT) | st.just(bytes(700_000)))
@settings(max_examples=30)
def test_compression_round_trip(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@compressing_codec
def test_text_becomes_smaller(codec: Codec) -> None:
    assert len(compress(codec, TEXT)) < len(TEXT) // 5


@every_codec
def test_any_buffer_is_accepted(codec: Codec) -> None:
    compressed = compress(codec, memoryview(bytearray(TEXT)))
    padded = memoryview(bytearray(b"xx" + compressed + b"yy"))[2:-2]
    assert decompress(codec, padded) == TEXT
    assert decompress(codec, memoryview(bytes(padded))) == TEXT


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unassigned_codecs_are_rejected(number: int) -> None:
    with pytest.raises(UnsupportedCodecError, match=str(number)):
        codec_of(number | 0x38)


def test_other_attribute_bits_do_not_change_the_codec() -> None:
    assert [codec_of(0x7FF8 | number) for number in range(5)] == list(Codec)


@every_codec
def test_size_limit_is_inclusive(codec: Codec) -> None:
    compressed = compress(codec, TEXT)
    assert decompress(codec, compressed, len(TEXT)) == TEXT
    with pytest.raises(BatchTooLargeError, match=str(len(TEXT) - 1)):
        decompress(codec, compressed, len(TEXT) - 1)


@compressing_codec
def test_decompression_bomb_is_rejected_within_the_memory_limit(codec: Codec) -> None:
    limit = 1024 * 1024
    data = bomb(codec, 64 * limit)
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLargeError):
            decompress(codec, data, limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Snappy blocks are collected and then copied, the others use at most the limit.
    assert peak < 3 * limit


def test_highly_compressible_data_below_the_limit_is_read() -> None:
    zeros = bytes(20_000_000)
    assert decompress(Codec.ZSTD, compress(Codec.ZSTD, zeros)) == zeros


@compressing_codec
@pytest.mark.parametrize("cut", [1, 3, 10])
def test_truncated_input_is_rejected_or_short_but_never_wrong(codec: Codec, cut: int) -> None:
    compressed = compress(codec, TEXT)
    try:
        data = decompress(codec, compressed[:-cut], len(TEXT))
    except RecordsError:
        return
    assert TEXT.startswith(data)


@compressing_codec
def test_input_of_another_codec_is_corrupt(codec: Codec) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(codec, b"\xfe\xfe\xfe nothing of the kind", 100_000)


@compressing_codec
def test_empty_input_is_corrupt(codec: Codec) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(codec, b"", 100_000)


@compressing_codec
@given(data=st.binary(max_size=300))
@settings(max_examples=150)
def test_random_bytes_raise_only_records_errors(codec: Codec, data: bytes) -> None:
    with suppress(RecordsError):
        assert len(decompress(codec, data, 100_000)) <= 100_000


@compressing_codec
@given(position=st.integers(0, 10_000), bit=st.integers(0, 7))
@settings(max_examples=150)
def test_flipped_bit_raises_only_records_errors(codec: Codec, position: int, bit: int) -> None:
    broken = bytearray(compress(codec, TEXT[:5000]))
    broken[position % len(broken)] ^= 1 << bit
    with suppress(RecordsError):
        assert len(decompress(codec, broken, 100_000)) <= 100_000


def test_gzip_with_several_members_is_read_completely() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"


def test_many_gzip_members_take_linear_time() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"") * 40_000) == b""


@pytest.mark.parametrize("size_bytes", [0, 1, 65_536, 65_537, 200_000])
def test_lz4_frame_has_independent_blocks_without_checksums(size_bytes: int) -> None:
    """Java reads no others, and librdkafka 0.11 none with checksums of blocks."""
    for data in (Random(0).randbytes(size_bytes), b"text" * (size_bytes // 4)):
        frame = compress(Codec.LZ4, data)
        info = lz4.frame.get_frame_info(frame)
        assert not any(info[flag] for flag in LZ4_FLAGS)
        assert lz4.frame.decompress(frame) == data
        assert decompress(Codec.LZ4, frame, max(size_bytes, 1)) == data


def test_lz4_with_linked_blocks_is_read() -> None:
    linked = bytes(cramjam.lz4.compress(TEXT))
    assert not linked[4] & 0x20
    assert decompress(Codec.LZ4, linked) == TEXT


def test_snappy_is_written_like_java() -> None:
    compressed = compress(Codec.SNAPPY, TEXT)
    assert compressed[:16].hex() == "82534e415050590000000001" + "00000001"
    length = int.from_bytes(compressed[16:20], "big")
    assert cramjam.snappy.decompress_raw_len(compressed[20 : 20 + length]) == 32 * 1024


def test_snappy_without_framing_is_read() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_empty_snappy_is_read_in_both_framings() -> None:
    assert decompress(Codec.SNAPPY, b"\x00") == b""
    assert decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"")) == b""


@pytest.mark.parametrize(
    "stream",
    [
        "82534e4150505900",
        "82534e41505059000000000100000001" + "000000",
        "82534e41505059000000000100000001" + "00000000",
        "82534e41505059000000000100000001" + "ffffffff",
        "82534e41505059000000000100000001" + "7fffffff00",
        "82534e41505059000000000100000001" + "00000005ffffffff0f",
    ],
    ids=["header", "length", "empty block", "negative block", "long block", "impossible size"],
)
def test_corrupt_snappy_stream_is_detected(stream: str) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(Codec.SNAPPY, bytes.fromhex(stream))


def test_impossible_snappy_size_allocates_nothing() -> None:
    claim = bytes.fromhex("ffffffff0f") + bytes(20)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatchError, match="claims"):
            decompress(Codec.SNAPPY, claim, 2**40)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
