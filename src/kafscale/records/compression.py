"""The five codecs of Kafka, both ways, with a bound on what comes out.

The law: decompressing never makes more bytes than the caller allows, whatever the input claims.
Input that is not what its codec says raises `CorruptBatchError`; input that would grow beyond the
bound raises `BatchTooLargeError` before it does. Which codec a client may use in which version of
an API is left to the handlers.

Written so that every client can read it: snappy in the framing of Java's xerial library, which
librdkafka and the Python clients know too; LZ4 in frames of independent blocks, because Java's
reader refuses linked ones. Snappy is read in both framings.
"""

import enum
from collections.abc import Callable
from struct import Struct
from typing import Final

import cramjam

from kafscale.errors import BatchTooLargeError, CorruptBatchError, UnsupportedCodecError
from kafscale.records.checksum import Buffer

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""The bound where the caller names none: above the largest frame that brokers take by default."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_VERSIONS: Final = Struct(">ii")
_XERIAL_HEADER: Final = _XERIAL_MAGIC + _XERIAL_VERSIONS.pack(1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_BLOCK_LENGTH: Final = Struct(">i")

_ATTEMPT_BYTES_MIN: Final = 64 * 1024
_ATTEMPT_GROWTH: Final = 8
_BUFFER_FULL: Final = "failed to write whole buffer"

assert len(_XERIAL_HEADER) == 16


class Codec(enum.IntEnum):
    """How records are compressed: the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_CODECS: Final = tuple(Codec)
CODEC_MASK: Final = 0x07


def codec_of(attributes: int) -> Codec:
    """The codec that the attributes of a batch or message name."""
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
            compressor = cramjam.lz4.Compressor(block_linked=False)
            compressor.compress(bytes(data))  # A copy: unlike the others, it takes bytes only.
            return bytes(compressor.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data))


def decompress(codec: Codec, data: Buffer, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    match codec:
        case Codec.NONE:
            _check_bound(len(data), size_bytes_max)
            return bytes(data)
        case Codec.GZIP:
            return _decompress_stream(cramjam.gzip.decompress_into, data, size_bytes_max)
        case Codec.SNAPPY:
            return _decompress_snappy(memoryview(data), size_bytes_max)
        case Codec.LZ4:
            return _decompress_stream(cramjam.lz4.decompress_into, data, size_bytes_max)
        case Codec.ZSTD:
            return _decompress_stream(cramjam.zstd.decompress_into, data, size_bytes_max)


def _decompress_stream(
    decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, size_bytes_max: int
) -> bytes:
    """Decompress into a buffer of fixed size, and into a larger one while that fails.

    These formats do not say reliably how much they hold; the decompressor stops when its buffer is
    full. Honest batches fit the first attempt; a bomb costs little more than filling the bound
    once. A broken input costs the later attempts in vain, rather than that the reason of a failure,
    which only its text tells, should decide whether a good batch is readable.
    """
    attempt_bytes = min(max(_ATTEMPT_BYTES_MIN, len(data) * _ATTEMPT_GROWTH), size_bytes_max)
    while True:
        output = bytearray(attempt_bytes)
        try:
            size = decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if attempt_bytes < size_bytes_max:
                attempt_bytes = min(attempt_bytes * _ATTEMPT_GROWTH, size_bytes_max)
                continue
            if _BUFFER_FULL in str(error):
                _check_bound(size_bytes_max + 1, size_bytes_max)
            raise CorruptBatchError(f"the compressed records are broken: {error}") from None
        return bytes(memoryview(output)[:size])


def _compress_xerial(data: memoryview) -> bytes:
    output = bytearray(_XERIAL_HEADER)
    for position in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(data[position : position + _XERIAL_BLOCK_BYTES])
        output += _BLOCK_LENGTH.pack(len(block))
        output += bytes(block)
    return bytes(output)


def _decompress_snappy(data: memoryview, size_bytes_max: int) -> bytes:
    # No raw block begins with these bytes: the third would be a copy from before its beginning.
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_block(data, 0, size_bytes_max)
    if len(data) < len(_XERIAL_HEADER):
        raise CorruptBatchError("the snappy stream ends within its header")
    output = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        start = position + _BLOCK_LENGTH.size
        if start > len(data):
            raise CorruptBatchError("the snappy stream ends within the length of a block")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position = start + length
        if length <= 0 or position > len(data):
            raise CorruptBatchError(f"a snappy block claims {length} bytes")
        output += _decompress_block(data[start:position], len(output), size_bytes_max)
    return bytes(output)


def _decompress_block(block: memoryview, size_bytes_before: int, size_bytes_max: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        # The densest element of the format makes 64 bytes of three: beyond that a claim is a lie.
        if len(block) == 0 or size * 3 > len(block) * 64:
            raise CorruptBatchError(f"a snappy block of {len(block)} bytes claims to hold {size}")
        _check_bound(size_bytes_before + size, size_bytes_max)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptBatchError(f"the compressed records are broken: {error}") from None


def _check_bound(size_bytes: int, size_bytes_max: int) -> None:
    if size_bytes > size_bytes_max:
        raise BatchTooLargeError(f"the records decompress to more than {size_bytes_max} bytes")
