"""Kafka's compression codecs, with a limit of the decompressed size.

Invariant: decompression never produces more bytes than the caller allows. Input that its codec
cannot decode raises `CorruptBatchError`; input that would exceed the limit raises
`BatchTooLargeError` before it does. Handlers decide which codec each API version allows.

Output is readable by all clients: snappy uses the framing of Java's xerial library, which
librdkafka and the Python clients support as well; LZ4 uses the frames of Java's clients, of
independent blocks without checksums: Java rejects linked blocks, and librdkafka 0.11 checksums of
blocks. All framings can be read.
"""

import enum
from collections.abc import Callable
from mmap import mmap
from struct import Struct
from typing import Final

import cramjam

from kafscale.errors import BatchTooLargeError, CorruptBatchError, UnsupportedCodecError
from kafscale.records.checksum import Buffer

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""The default limit; larger than the largest request that brokers accept by default."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_VERSIONS: Final = Struct(">ii")
_XERIAL_HEADER: Final = _XERIAL_MAGIC + _XERIAL_VERSIONS.pack(1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_BLOCK_LENGTH: Final = Struct(">i")

_LZ4_HEADER: Final = bytes.fromhex("04224d18 60 40 82")
"""Magic, flags (version 1, independent blocks), the block size of 64 KiB, the checksum of both."""
_LZ4_BLOCK_BYTES: Final = 64 * 1024
_LZ4_BLOCK_LENGTH: Final = Struct("<I")
_LZ4_UNCOMPRESSED_BIT: Final = 1 << 31
_LZ4_END: Final = bytes(4)

_BYTEARRAY_BYTES_MAX: Final = 1024 * 1024
_ATTEMPT_BYTES_MIN: Final = 64 * 1024
_ATTEMPT_GROWTH: Final = 8
_BUFFER_FULL: Final = "failed to write whole buffer"

assert len(_XERIAL_HEADER) == 16


class Codec(enum.IntEnum):
    """A compression codec: the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_CODECS: Final = tuple(Codec)
CODEC_MASK: Final = 0x07


def codec_of(attributes: int) -> Codec:
    """Return the codec in the attributes of a batch or message."""
    number = attributes & CODEC_MASK
    if number >= len(_CODECS):
        raise UnsupportedCodecError(f"compression codec {number} is unknown")
    return _CODECS[number]


def compress(codec: Codec, data: Buffer) -> bytes:
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(data))
        case Codec.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Codec.LZ4:
            return _compress_lz4(memoryview(data))
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data))


def decompress(codec: Codec, data: Buffer, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    return bytes(decompress_view(codec, data, size_bytes_max))


def decompress_view(
    codec: Codec, data: Buffer, size_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> memoryview:
    """`decompress` without a copy, for threads: other threads run meanwhile."""
    match codec:
        case Codec.NONE:
            _check_limit(len(data), size_bytes_max)
            return memoryview(data)
        case Codec.GZIP:
            return _decompress_stream(cramjam.gzip.decompress_into, data, size_bytes_max)
        case Codec.SNAPPY:
            return _decompress_snappy(memoryview(data), size_bytes_max)
        case Codec.LZ4:
            return _decompress_stream(cramjam.lz4.decompress_into, data, size_bytes_max)
        case Codec.ZSTD:
            return _decompress_stream(cramjam.zstd.decompress_into, data, size_bytes_max)


def _decompress_stream(
    decompress_into: Callable[[Buffer, bytearray | mmap], int], data: Buffer, size_bytes_max: int
) -> memoryview:
    """Decompress into a buffer of fixed size, and retry with larger ones on failure.

    These formats do not state their decompressed size reliably; the decompressor fails when its
    buffer is full. Normal batches fit the first attempt; a decompression bomb costs little more
    than filling the limit once. Corrupt input is retried as well, because only the error text
    distinguishes it from a full buffer, and a valid batch must not depend on that text.
    """
    attempt_bytes = min(max(_ATTEMPT_BYTES_MIN, len(data) * _ATTEMPT_GROWTH), size_bytes_max)
    while True:
        # Python fills a bytearray with zeros before other threads run: 50 ms for 128 MiB.
        is_large = attempt_bytes > _BYTEARRAY_BYTES_MAX
        output = mmap(-1, attempt_bytes) if is_large else bytearray(attempt_bytes)
        try:
            size = decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if attempt_bytes < size_bytes_max:
                attempt_bytes = min(attempt_bytes * _ATTEMPT_GROWTH, size_bytes_max)
                continue
            if _BUFFER_FULL in str(error):
                _check_limit(size_bytes_max + 1, size_bytes_max)
            raise CorruptBatchError(f"corrupt compressed records: {error}") from None
        return memoryview(output)[:size]


def _compress_xerial(data: memoryview) -> bytes:
    output = bytearray(_XERIAL_HEADER)
    for position in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(data[position : position + _XERIAL_BLOCK_BYTES])
        output += _BLOCK_LENGTH.pack(len(block))
        output += bytes(block)
    return bytes(output)


def _compress_lz4(data: memoryview) -> bytes:
    output = bytearray(_LZ4_HEADER)
    for position in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[position : position + _LZ4_BLOCK_BYTES]
        block = memoryview(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            output += _LZ4_BLOCK_LENGTH.pack(len(block))
            output += block
        else:
            output += _LZ4_BLOCK_LENGTH.pack(len(plain) | _LZ4_UNCOMPRESSED_BIT)
            output += plain
    return bytes(output + _LZ4_END)


def _decompress_snappy(data: memoryview, size_bytes_max: int) -> memoryview:
    # No raw block begins with these bytes: the third would copy from before the start.
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return memoryview(_decompress_block(data, 0, size_bytes_max))
    if len(data) < len(_XERIAL_HEADER):
        raise CorruptBatchError("snappy stream ends within its header")
    output = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        start = position + _BLOCK_LENGTH.size
        if start > len(data):
            raise CorruptBatchError("snappy stream ends within a block length")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position = start + length
        if length <= 0 or position > len(data):
            raise CorruptBatchError(f"invalid snappy block length {length}")
        output += _decompress_block(data[start:position], len(output), size_bytes_max)
    return memoryview(output)


def _decompress_block(block: memoryview, size_bytes_before: int, size_bytes_max: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        # The densest element of the format encodes 64 bytes in three; more is impossible.
        if len(block) == 0 or size * 3 > len(block) * 64:
            raise CorruptBatchError(f"snappy block of {len(block)} bytes claims {size} bytes")
        _check_limit(size_bytes_before + size, size_bytes_max)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptBatchError(f"corrupt compressed records: {error}") from None


def _check_limit(size_bytes: int, size_bytes_max: int) -> None:
    if size_bytes > size_bytes_max:
        raise BatchTooLargeError(f"the records decompress to more than {size_bytes_max} bytes")
