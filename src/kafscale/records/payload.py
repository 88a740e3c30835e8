"""The records of a batch as one run of bytes: inflated for reading, recompressed for storing.

Everything here works on whole payloads and leaves the single records to `record`. It is never
called on the produce path; a segment's roll, the readers of segments and the conversions call it.
"""

from struct import Struct

from kafscale.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    LENGTH_POSITION,
    BatchView,
)
from kafscale.records.compression import (
    CODEC_MASK,
    DECOMPRESSED_BYTES_MAX,
    Codec,
    compress,
    decompress,
)

_LENGTH = Struct(">i")
_ATTRIBUTES = Struct(">h")


def inflate(batch: BatchView, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """The records of a batch, decompressed: `count` of them, one after the other."""
    return decompress(batch.codec, batch.payload, decompressed_bytes_max)


def recompress(
    batch: BatchView, codec: Codec, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytearray:
    """The same batch in another codec: all but length, codec and checksum is kept.

    The result may be larger than the batch was, where there is little to compress; whether it is
    worth its while is the caller's to compare.
    """
    if batch.codec is Codec.NONE:
        payload = compress(codec, batch.payload)
    else:
        inflated = inflate(batch, decompressed_bytes_max=decompressed_bytes_max)
        payload = compress(codec, inflated)
    output = bytearray(batch.buffer[:HEADER_BYTES])
    output += payload
    _LENGTH.pack_into(output, LENGTH_POSITION, len(output) - LENGTH_OVERHEAD_BYTES)
    _ATTRIBUTES.pack_into(output, ATTRIBUTES_POSITION, batch.attributes & ~CODEC_MASK | codec)
    BatchView(output).write_checksum()
    return output
