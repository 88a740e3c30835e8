"""The checksum that a snapshot of etcd carries in itself. Pure.

etcd ends the stream of a snapshot with the SHA-256 of everything before it. A snapshot that was not
verified against it does not count as taken.
"""

import hashlib
from typing import Final

DIGEST_BYTES: Final = hashlib.sha256().digest_size


class SnapshotChecksum:
    """Verifies a snapshot that is passed in chunks.

    >>> checksum = SnapshotChecksum()
    >>> checksum.update(b"database")
    >>> checksum.is_valid
    False
    """

    __slots__ = ("_database", "_tail", "size_bytes")

    def __init__(self) -> None:
        self._database = hashlib.sha256()
        self._tail = b""
        self.size_bytes = 0

    def update(self, chunk: bytes | memoryview) -> None:
        """Add the next chunk; the last bytes are held back, as they may be the checksum."""
        self.size_bytes += len(chunk)
        end = bytes(chunk[-DIGEST_BYTES:])
        if len(end) < len(chunk):
            self._database.update(self._tail)
            self._database.update(chunk[:-DIGEST_BYTES])
            self._tail = end
        else:
            tail = self._tail + end
            self._database.update(tail[:-DIGEST_BYTES])
            self._tail = tail[-DIGEST_BYTES:]

    @property
    def is_valid(self) -> bool:
        """True if it ends with the checksum of the rest, and the rest is not empty."""
        return self.size_bytes > DIGEST_BYTES and self._tail == self._database.digest()

    @property
    def sha256(self) -> str:
        """Of everything, as printed by `sha256sum`."""
        everything = self._database.copy()
        everything.update(self._tail)
        return everything.hexdigest()
