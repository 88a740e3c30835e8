"""What the objects of snapshots are called, both ways. Pure.

    etcd-snapshots/default.production/20260131T120000Z-48151.db     the database
    etcd-snapshots/default.production/20260131T120000Z-48151.json   what is said of it

The law: the name tells when the snapshot was taken, to the second, and which revision it has come
to at least; what is parsed is the very name that would be made of the parts.
"""

import re
from datetime import UTC, datetime
from typing import Final

import msgspec

LATEST: Final = "latest"
"""What people call the newest snapshot."""

DATABASE_SUFFIX: Final = ".db"
DESCRIPTION_SUFFIX: Final = ".json"

_NAME: Final = re.compile(r"([0-9]{8}T[0-9]{6}Z)-(0|[1-9][0-9]{0,18})")
_TIME: Final = "%Y%m%dT%H%M%SZ"


class SnapshotName(msgspec.Struct, frozen=True, order=True):
    """When a snapshot was taken, and of what; in the order of time."""

    taken_at_ms: int
    """In whole seconds."""
    revision: int

    def __str__(self) -> str:
        return f"{stamp(self.taken_at_ms)}-{self.revision}"


def directory(prefix: str, namespace: str, cluster: str) -> str:
    """What keys of a cluster's snapshots begin with; the namespace is Kubernetes'.

    >>> directory("etcd-snapshots/", "default", "production")
    'etcd-snapshots/default.production'
    """
    return "/".join(filter(None, (prefix.strip("/"), f"{namespace}.{cluster}")))


def stamp(time_ms: int) -> str:
    """A time as names have it.

    >>> stamp(1_700_000_000_123)
    '20231114T221320Z'
    """
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime(_TIME)


def database_key(within: str, name: SnapshotName) -> str:
    return f"{within}/{name}{DATABASE_SUFFIX}"


def description_key(database: str) -> str:
    """The key beside that of a database.

    >>> description_key("a/20231114T221320Z-7.db")
    'a/20231114T221320Z-7.json'
    """
    return database.removesuffix(DATABASE_SUFFIX) + DESCRIPTION_SUFFIX


def parse(key: str) -> SnapshotName | None:
    """What the key of a database or of its description says; None for other objects.

    >>> parse("a/20231114T221320Z-7.db")
    SnapshotName(taken_at_ms=1700000000000, revision=7)
    """
    stem, dot, suffix = key.rpartition("/")[2].rpartition(".")
    found = _NAME.fullmatch(stem)
    if found is None or dot + suffix not in {DATABASE_SUFFIX, DESCRIPTION_SUFFIX}:
        return None
    try:
        moment = datetime.strptime(found[1], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
    return SnapshotName(int(moment.timestamp()) * 1000, int(found[2]))
