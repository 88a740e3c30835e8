"""Message sets: the record formats before batches, magic 0 (no timestamps) and magic 1.

Layout, big-endian, message after message:

    at  0  offset        int64
    at  8  message size  int32    of what follows this field
    at 12  CRC           uint32   CRC-32 of everything after it
    at 16  magic         int8     0 or 1
    at 17  attributes    int8     bits 0-2 codec, 3 timestamp type (magic 1)
    at 18  timestamp     int64    magic 1 only
           key, value             each an int32 length, -1 for null, and its bytes

A compressed message is a wrapper: its value is a message set, and its offset that of the last inner
message. Inner offsets are absolute in magic 0, and relative to the first in magic 1 (KIP-31).

Reading unwraps compressed messages and verifies the checksums of both levels; one limit applies to
everything that is decompressed. Writing creates no wrappers.

The broker stores only batches of magic 2. Message sets of Produce v0 to v2 are up-converted before
validation; batches for Fetch v0 to v3 are down-converted after reading. The handlers map API
versions to magic, and reject zstd for old consumers. Down-converted sets are not compressed: every
client can read them, and the problems of old compressed sets (such as KAFKA-3160) do not arise.
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from struct import Struct
from typing import Final

import msgspec

from kafscale.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidRecordError,
    UnsupportedCodecError,
    UnsupportedFormatError,
)
from kafscale.records.batch import NO_TIMESTAMP, TIMESTAMP_TYPE_BIT, BatchView, TimestampType
from kafscale.records.builder import build
from kafscale.records.checksum import Buffer, crc32
from kafscale.records.compression import DECOMPRESSED_BYTES_MAX, Codec, codec_of, decompress
from kafscale.records.record import Record, iterate

_ENTRY: Final = Struct(">qi")
_FIXED_0: Final = Struct(">Ibb")
_FIXED_1: Final = Struct(">Ibbq")
_LENGTH: Final = Struct(">i")
_CRC_BYTES: Final = 4
_FIXED: Final = {0: _FIXED_0, 1: _FIXED_1}
_MESSAGE_BYTES_MIN: Final = _FIXED_0.size + 2 * _LENGTH.size

assert _ENTRY.size == 12
assert _MESSAGE_BYTES_MIN == 14


class Message(msgspec.Struct, frozen=True, gc=False):
    """A record of a message set, with its format."""

    magic: int
    codec: Codec
    """The codec of its wrapper, or `NONE`."""
    timestamp_type: TimestampType
    record: Record


# --- conversion ---------------------------------------------------------------------------------


def up_convert(
    data: Buffer,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    messages_max: int = sys.maxsize,
) -> bytearray:
    """Convert a producer's message set into one batch, with offsets from 0.

    The given offsets are ignored, because old clients do not set them consistently. The batch gets
    the codec of the last compressed message, and LogAppendTime only if every message has it, which
    `BatchView.validate` then rejects as in any other batch.
    """
    messages = list(
        read(data, decompressed_bytes_max=decompressed_bytes_max, messages_max=messages_max)
    )
    if not messages:
        raise InvalidRecordError("empty message set")
    records = [
        Record(offset, message.record.timestamp_ms, message.record.key, message.record.value)
        for offset, message in enumerate(messages)
    ]
    codecs = [message.codec for message in messages if message.codec is not Codec.NONE]
    timestamp_types = {message.timestamp_type for message in messages}
    return build(
        records,
        codec=codecs[-1] if codecs else Codec.NONE,
        timestamp_type=min(timestamp_types, default=TimestampType.CREATE_TIME),
    )


def down_convert(
    batches: Iterable[BatchView],
    magic: int,
    *,
    first_offset: int = 0,
    bytes_max: int | None = None,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytearray:
    """Convert batches into one message set of magic 0 or 1, with the same offsets.

    Headers, producer fields and, in magic 0, timestamps are lost. Control batches are skipped,
    because old consumers would treat them as data, as are records before `first_offset`. The
    output ends once it reaches `bytes_max`. `decompressed_bytes_max` applies to each batch.
    """
    assert magic in {0, 1}
    output = bytearray()
    for batch in batches:
        if batch.is_control:
            continue
        timestamp_type = batch.timestamp_type
        for record in iterate(batch, decompressed_bytes_max=decompressed_bytes_max):
            if record.offset >= first_offset:
                append(output, record, magic, timestamp_type)
                if bytes_max is not None and len(output) >= bytes_max:
                    return output
    return output


# --- messages -----------------------------------------------------------------------------------


def read(
    data: Buffer,
    *,
    partial_ok: bool = False,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    messages_max: int = sys.maxsize,
) -> Iterator[Message]:
    """Yield the messages of a set; `partial_ok` skips a truncated last one."""
    bytes_left, messages_left = decompressed_bytes_max, messages_max
    for message in _read_shallow(data, partial_ok=partial_ok):
        if message.codec is Codec.NONE:
            found = [message]
        else:
            inner = _inflate(message, bytes_left)
            bytes_left -= len(inner)
            found = _unwrap(message, inner, messages_left)
        messages_left -= len(found)
        if messages_left < 0:
            raise BatchTooLargeError(f"a message set exceeds the limit of {messages_max} messages")
        yield from found


def append(output: bytearray, record: Record, magic: int, timestamp_type: TimestampType) -> None:
    """Append a record as an uncompressed message; these formats have no headers."""
    attributes = 0
    if magic == 1 and timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes = TIMESTAMP_TYPE_BIT
    body = bytearray((magic, attributes))
    if magic == 1:
        body += record.timestamp_ms.to_bytes(8, "big", signed=True)
    for field in (record.key, record.value):
        body += _LENGTH.pack(-1 if field is None else len(field))
        body += field or b""
    output += _ENTRY.pack(record.offset, _CRC_BYTES + len(body))
    output += crc32(body).to_bytes(_CRC_BYTES, "big")
    output += body


def _read_shallow(data: Buffer, *, partial_ok: bool = False) -> Iterator[Message]:
    """Yield the messages of one level; the value of a wrapper is the compressed set."""
    view = memoryview(data)
    position = 0
    while position < len(view):
        start = position + _ENTRY.size
        if start <= len(view):
            offset, size = _ENTRY.unpack_from(view, position)
            position = start + size
            if size < _MESSAGE_BYTES_MIN:
                raise CorruptBatchError(f"invalid message size {size}")
        if start > len(view) or position > len(view):
            if partial_ok:
                return
            raise CorruptBatchError("a message extends beyond its set")
        yield _read_message(offset, view[start:position])


def _read_message(offset: int, body: memoryview) -> Message:
    stored, magic, attributes = _FIXED_0.unpack_from(body)
    if magic not in _FIXED:
        raise UnsupportedFormatError(f"unsupported magic {magic} in a message set")
    computed = crc32(body[_CRC_BYTES:])
    if stored != computed:
        raise CorruptBatchError(
            f"message CRC mismatch: computed {computed:08x}, stored {stored:08x}"
        )
    codec = codec_of(attributes)
    if codec is Codec.ZSTD:
        raise UnsupportedCodecError("zstd is not supported in message sets")
    timestamp_type = TimestampType.CREATE_TIME
    timestamp_ms = NO_TIMESTAMP
    if magic == 1:
        if len(body) < _FIXED_1.size:
            raise CorruptBatchError("a message ends within its timestamp")
        (_, _, _, timestamp_ms) = _FIXED_1.unpack_from(body)
        if attributes & TIMESTAMP_TYPE_BIT:
            timestamp_type = TimestampType.LOG_APPEND_TIME
    key, position = _read_bytes(body, _FIXED[magic].size)
    value, position = _read_bytes(body, position)
    if position != len(body):
        raise CorruptBatchError(f"{len(body) - position} extra bytes after a message value")
    return Message(magic, codec, timestamp_type, Record(offset, timestamp_ms, key, value))


def _read_bytes(body: memoryview, position: int) -> tuple[bytes | None, int]:
    start = position + _LENGTH.size
    if start > len(body):
        raise CorruptBatchError("a message ends within a length")
    (length,) = _LENGTH.unpack_from(body, position)
    if length == -1:
        return None, start
    end = start + length
    if length < 0 or end > len(body):
        raise CorruptBatchError(f"a field of {length} bytes does not fit its message")
    return bytes(body[start:end]), end


def _inflate(wrapper: Message, size_bytes_max: int) -> bytes:
    compressed = wrapper.record.value
    if compressed is None:
        raise InvalidRecordError("a compressed message has no value")
    if wrapper.codec is Codec.LZ4 and wrapper.magic == 0:
        compressed = fix_header_checksum(compressed)
    return decompress(wrapper.codec, compressed, size_bytes_max)


def _unwrap(wrapper: Message, data: bytes, messages_max: int) -> list[Message]:
    """The inner messages, with absolute offsets and effective timestamps.

    If there are more than `messages_max`, one more than that.
    """
    messages = list(islice(_read_shallow(data), min(messages_max, sys.maxsize - 1) + 1))
    if not messages:
        raise InvalidRecordError("a compressed message contains no messages")
    for message in messages:
        if message.codec is not Codec.NONE:
            raise InvalidRecordError("nested compressed messages")
        if message.magic != wrapper.magic:
            raise InvalidRecordError(
                f"message of magic {message.magic} in a wrapper of magic {wrapper.magic}"
            )
    shift = 0
    if wrapper.magic == 1:
        # Producers leave the offset of a wrapper at 0; brokers set it.
        shift = max(wrapper.record.offset - messages[-1].record.offset, 0)
    append_time_ms: int | None = None
    if wrapper.timestamp_type is TimestampType.LOG_APPEND_TIME:
        append_time_ms = wrapper.record.timestamp_ms
    return [_resolve(message.record, wrapper, shift, append_time_ms) for message in messages]


def _resolve(record: Record, wrapper: Message, shift: int, append_time_ms: int | None) -> Message:
    timestamp_ms = record.timestamp_ms if append_time_ms is None else append_time_ms
    message_ = Record(record.offset + shift, timestamp_ms, record.key, record.value)
    return Message(wrapper.magic, wrapper.codec, wrapper.timestamp_type, message_)


# --- LZ4 frames of magic 0 ----------------------------------------------------------------------

FRAME_MAGIC: Final = b"\x04\x22\x4d\x18"
_CONTENT_SIZE_FLAG: Final = 0x08
_DICTIONARY_ID_FLAG: Final = 0x01

_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1
_MASK: Final = 0xFFFF_FFFF


def fix_header_checksum(frame: bytes) -> bytes:
    """Return the frame with the correct header checksum.

    In magic 0, Kafka's clients computed this byte over the wrong range (KAFKA-3160), and brokers
    and consumers ignore it. The decompressor used here does not.
    """
    if frame[:4] != FRAME_MAGIC or len(frame) < 7:
        raise CorruptBatchError("invalid LZ4 frame header")
    flags = frame[4]
    end = 6
    end += 8 if flags & _CONTENT_SIZE_FLAG else 0
    end += 4 if flags & _DICTIONARY_ID_FLAG else 0
    checksum = xxh32_short(frame[4:end]) >> 8 & 0xFF
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]


def xxh32_short(data: bytes) -> int:
    """XXH32 with seed 0, for less than 16 bytes (without the main loop)."""
    assert len(data) < 16
    state = _PRIME_5 + len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little")
        state = _rotate(state + word * _PRIME_3, 17) * _PRIME_4
    for byte in data[whole:]:
        state = _rotate(state + byte * _PRIME_5, 11) * _PRIME_1
    state &= _MASK
    state = (state ^ state >> 15) * _PRIME_2 & _MASK
    state = (state ^ state >> 13) * _PRIME_3 & _MASK
    return state ^ state >> 16


def _rotate(value: int, count: int) -> int:
    value &= _MASK
    return value << count | value >> 32 - count
