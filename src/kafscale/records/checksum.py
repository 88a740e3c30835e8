"""The two checksums of Kafka's record formats, over any buffer and without a copy.

CRC-32C (Castagnoli) guards a batch of magic 2, by the processor's own instruction; CRC-32 (the one
of zip files) guards each message of magic 0 and 1. What is covered, and what a mismatch means, is
decided by the modules that know the layouts.
"""

import zlib

import crc32c as castagnoli

Buffer = bytes | bytearray | memoryview
"""What the room reads from: contiguous bytes, writable or not."""


def crc32c(buffer: Buffer, before: int = 0) -> int:
    """The checksum of a buffer, going on from that of what lies before it."""
    return castagnoli.crc32c(buffer, before)


def crc32(buffer: Buffer) -> int:
    return zlib.crc32(buffer)
