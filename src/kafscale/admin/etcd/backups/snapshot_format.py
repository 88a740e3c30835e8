"""Snapshots of etcd as objects: their keys, and the checksum that each carries in itself. Pure.

    etcd-snapshots/default.production/20260131T120000Z-48151.db     the database
    etcd-snapshots/default.production/20260131T120000Z-48151.json   its description

The name has the time of the snapshot in seconds, and a revision that the snapshot contains. Only
names that formatting would produce are parsed. etcd ends the stream of a snapshot with the SHA-256
of everything before it. A snapshot that was not verified against it does not count as taken.
"""

import hashlib
import re
from datetime import UTC, datetime
from typing import Final

import msgspec

LATEST: Final = "latest"
"""Stands for the newest snapshot in commands and resources."""

DATABASE_SUFFIX: Final = ".db"
DESCRIPTION_SUFFIX: Final = ".json"

_NAME: Final = re.compile(r"([0-9]{8}T[0-9]{6}Z)-(0|[1-9][0-9]{0,18})")
_TIME: Final = "%Y%m%dT%H%M%SZ"

DIGEST_BYTES: Final = hashlib.sha256().digest_size


class SnapshotName(msgspec.Struct, frozen=True, order=True):
    """The time and revision of a snapshot; sorts by time."""

    taken_at_ms: int
    """In whole seconds."""
    revision: int

    def __str__(self) -> str:
        return f"{stamp(self.taken_at_ms)}-{self.revision}"


def directory(prefix: str, namespace: str, cluster: str) -> str:
    """The prefix of a cluster's snapshots; the namespace is Kubernetes'.

    >>> directory("etcd-snapshots/", "default", "production")
    'etcd-snapshots/default.production'
    """
    return "/".join(filter(None, (prefix.strip("/"), f"{namespace}.{cluster}")))


def stamp(time_ms: int) -> str:
    """Format a time as in names.

    >>> stamp(1_700_000_000_123)
    '20231114T221320Z'
    """
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime(_TIME)


def database_key(prefix: str, name: SnapshotName) -> str:
    return f"{prefix}/{name}{DATABASE_SUFFIX}"


def description_key(database: str) -> str:
    """The key of the description of a database.

    >>> description_key("a/20231114T221320Z-7.db")
    'a/20231114T221320Z-7.json'
    """
    return database.removesuffix(DATABASE_SUFFIX) + DESCRIPTION_SUFFIX


def parse(key: str) -> SnapshotName | None:
    """Parse the key of a database or description; None for other objects.

    >>> parse("a/20231114T221320Z-7.db")
    SnapshotName(taken_at_ms=1700000000000, revision=7)
    """
    stem, dot, suffix = key.rpartition("/")[2].rpartition(".")
    match = _NAME.fullmatch(stem)
    if match is None or dot + suffix not in {DATABASE_SUFFIX, DESCRIPTION_SUFFIX}:
        return None
    try:
        taken_at = datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
    return SnapshotName(int(taken_at.timestamp()) * 1000, int(match[2]))


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
