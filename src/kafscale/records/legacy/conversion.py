"""Old formats at the edge: message sets made into batches, and batches into message sets.

The broker stores batches of magic 2 only. What a client sends by Produce v0 to v2 is up-converted
before it is validated; what it asks for by Fetch v0 to v3 is down-converted after it was read.
Which version speaks which magic is left to the handlers, and so is refusing zstd to old consumers.

Down-converted sets are written without compression, whatever the batch had: every client reads
them, and the many mistakes of old compressed sets (KAFKA-3160 among them) are none of ours.
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
    """A message set from a producer as one batch, with offsets from 0.

    The offsets sent are ignored, as old clients did not agree on them. The batch has the codec of
    the last compressed message, and the broker's timestamp type only where every message has it;
    `BatchView.validate` then refuses it as in any other batch.
    """
    messages = list(message_set.read(data, decompressed_bytes_max=decompressed_bytes_max))
    if not messages:
        raise InvalidRecordError("a message set holds no messages")
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
    """Batches as one message set of magic 0 or 1, offsets kept.

    Lost are headers, producer fields and, in magic 0, timestamps. Control batches are left out,
    because old consumers would take them for data, and so are records before `first_offset`. Once
    there are `bytes_max`, the rest is left for later. The bound on what is decompressed holds for
    each batch.
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
