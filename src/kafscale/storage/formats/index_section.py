"""How state is kept in a section of an index: a version, a checksum, then the body.

Layout, big-endian:

    at  0  version   int16
    at  2  CRC       uint32   CRC-32C of the body
    at  6  body

An index has no checksum of its own, and a flipped bit in a sequence or an offset would show only
as a wrong answer much later; so what is kept in its sections carries one. What the body means is
left to those who keep it: `producers` and `epochs`.
"""

from struct import Struct
from typing import Final

from kafscale.errors import DamagedObjectError
from kafscale.records.checksum import Buffer, crc32c

_PREFIX: Final = Struct(">hI")

assert _PREFIX.size == 6


def seal(version: int, body: bytes) -> bytes:
    return _PREFIX.pack(version, crc32c(body)) + body


def unseal(key: str, version: int, section: Buffer) -> memoryview:
    """The body of a section that was found in the object under `key`."""
    view = memoryview(section)
    if len(view) < _PREFIX.size:
        raise DamagedObjectError(key, f"a section of {len(view)} bytes is shorter than its prefix")
    found, checksum = _PREFIX.unpack_from(view)
    if found != version:
        raise DamagedObjectError(key, f"a section has version {found}, where {version} is known")
    body = view[_PREFIX.size :]
    if crc32c(body) != checksum:
        raise DamagedObjectError(key, "the CRC of a section does not hold")
    return body
