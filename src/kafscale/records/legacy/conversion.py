"""Conversion between message sets and batches.

The broker stores only batches of magic 2. Message sets of Produce v0 to v2 are up-converted before
validation; batches for Fetch v0 to v3 are down-converted after reading. The handlers map API
versions to magic, and reject zstd for old consumers.

Down-converted sets are not compressed: every client can read them, and the problems of old
compressed sets (such as KAFKA-3160) do not arise.
"""

from collections.abc import Iterable

from kafscale.errors import InvalidRecordError
from kafscale.records.batch import BatchView, TimestampType
from kafscale.records.builder import build
from kafscale.records.checksum import Buffer
from kafscale.records.compression import DECOMPRESSED_BYTES_MAX, Codec
from kafscale.records.legacy import message_set
from kafscale.records.record import Record, iterate


def up_convert(data: Buffer, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytearray:
    """Convert a producer's message set into one batch, with offsets from 0.

    The given offsets are ignored, because old clients do not set them consistently. The batch gets
    the codec of the last compressed message, and LogAppendTime only if every message has it, which
    `BatchView.validate` then rejects as in any other batch.
    """
    messages = list(message_set.read(data, decompressed_bytes_max=decompressed_bytes_max))
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
                message_set.append(output, record, magic, timestamp_type)
                if bytes_max is not None and len(output) >= bytes_max:
                    return output
    return output
