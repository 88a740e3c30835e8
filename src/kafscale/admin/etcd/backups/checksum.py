"""The checksum of a snapshot, which it carries in itself. Pure.

etcd ends the stream of a snapshot with the SHA-256 of all that came before. The law: a snapshot
that was not proven to be whole by it does not count.
"""

import hashlib
from typing import Final

DIGEST_BYTES: Final = hashlib.sha256().digest_size


class SnapshotDigest:
    """Told a snapshot piece by piece, it knows in the end whether that was all.

    >>> digest = SnapshotDigest()
    >>> digest.update(b"database")
    >>> digest.is_whole
    False
    """

    __slots__ = ("_database", "_last", "size_bytes")

    def __init__(self) -> None:
        self._database = hashlib.sha256()
        self._last = b""
        self.size_bytes = 0

    def update(self, piece: bytes | memoryview) -> None:
        """Take in the next piece; what may be the checksum is held back."""
        self.size_bytes += len(piece)
        end = bytes(piece[-DIGEST_BYTES:])
        if len(end) < len(piece):
            self._database.update(self._last)
            self._database.update(piece[:-DIGEST_BYTES])
            self._last = end
        else:
            held = self._last + end
            self._database.update(held[:-DIGEST_BYTES])
            self._last = held[-DIGEST_BYTES:]

    @property
    def is_whole(self) -> bool:
        """Whether it ends with the checksum of the rest, and there is a rest."""
        return self.size_bytes > DIGEST_BYTES and self._last == self._database.digest()

    @property
    def sha256(self) -> str:
        """Of everything, as `sha256sum` prints it."""
        everything = self._database.copy()
        everything.update(self._last)
        return everything.hexdigest()
