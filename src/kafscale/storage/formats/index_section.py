"""The sections of an index: their magics, and their encoding with version, checksum and body.

Layout, big-endian:

    at  0  version   int16
    at  2  CRC       uint32   CRC-32C of the body
    at  6  body

Each section has its own checksum, because a flipped bit in a sequence or an offset would show only
as a wrong result much later. `producer_state`, `leader_epochs` and `transactions` define the
bodies.
"""

from struct import Struct
from typing import Final

from kafscale.errors import DamagedObjectError
from kafscale.records.checksum import Buffer, crc32c

PRODUCERS_SECTION: Final = b"PROD"
"""The magic of the section with the producer state at the segment's end."""
EPOCHS_SECTION: Final = b"EPOC"
"""The magic of the section with the leader epochs at the segment's end."""
TRANSACTIONS_SECTION: Final = b"TXNS"
"""The magic of the section with the transactions that are open, or were aborted."""

_PREFIX: Final = Struct(">hI")

assert _PREFIX.size == 6


def encode_section(version: int, body: bytes) -> bytes:
    return _PREFIX.pack(version, crc32c(body)) + body


def decode_section(key: str, version: int, section: Buffer) -> memoryview:
    """Return the body of a section that was read from the object `key`."""
    view = memoryview(section)
    if len(view) < _PREFIX.size:
        raise DamagedObjectError(key, f"a section of {len(view)} bytes is shorter than its prefix")
    found_version, checksum = _PREFIX.unpack_from(view)
    if found_version != version:
        raise DamagedObjectError(key, f"a section has version {found_version}, expected {version}")
    body = view[_PREFIX.size :]
    if crc32c(body) != checksum:
        raise DamagedObjectError(key, "CRC mismatch in a section")
    return body
