"""A member of etcd that does what a test wants of it."""

import hashlib

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.etcd.maintenance import MemberStatus

DATABASE = b"database of etcd" * 1000


def whole(database=DATABASE):
    """A database as etcd sends it: with its checksum behind it."""
    return database + hashlib.sha256(database).digest()


def status(**changes):
    said = {
        "version": "3.6.5",
        "database_bytes": len(DATABASE),
        "database_used_bytes": len(DATABASE),
        "leader_id": 1,
        "member_id": 2,
        "cluster_id": 0xC0FFEE,
        "revision": 17,
    }
    return MemberStatus(**said | changes)


class FakeMember:
    """Sends its content in pieces, or fails where it is told to."""

    def __init__(self, content=None, *, piece_bytes=1000, breaks=False, **changes):
        self.content = whole() if content is None else content
        self.piece_bytes = piece_bytes
        self.breaks = breaks
        self.answer = status(**changes)
        self.snapshots = 0
        self.is_closed = False

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.is_closed = True

    async def status(self):
        if self.answer.leader_id < 0:
            raise StoreUnavailableError("it is gone")
        return self.answer

    async def snapshot(self):
        self.snapshots += 1
        for start in range(0, len(self.content), self.piece_bytes):
            yield self.content[start : start + self.piece_bytes]
            if self.breaks:
                raise StoreUnavailableError("it broke off")
