"""The checksums of Kafka's record formats, over any buffer and without a copy.

CRC-32C (Castagnoli, a CPU instruction) for batches of magic 2; CRC-32 (zlib) for messages of
magic 0 and 1.
"""

import zlib

import fastcrc

Buffer = bytes | bytearray | memoryview
"""Contiguous bytes, writable or not."""


def crc32c(buffer: Buffer, before: int = 0) -> int:
    """Return the checksum of a buffer; `before` is the checksum of preceding data."""
    return fastcrc.crc32.iscsi(buffer, before)


def crc32(buffer: Buffer) -> int:
    return zlib.crc32(buffer)
