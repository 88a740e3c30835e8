"""A scripted etcd member."""

import hashlib

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.etcd.maintenance import MemberStatus

DATABASE = b"database of etcd" * 1000


def with_checksum(database=DATABASE):
    """A database as etcd sends it, followed by its checksum."""
    return database + hashlib.sha256(database).digest()


def status(**changes):
    current = {
        "version": "3.6.5",
        "database_bytes": len(DATABASE),
        "database_used_bytes": len(DATABASE),
        "leader_id": 1,
        "member_id": 2,
        "cluster_id": 0xC0FFEE,
        "revision": 17,
    }
    return MemberStatus(**current | changes)


class FakeMember:
    """Sends its content in chunks, or fails on request."""

    def __init__(self, content=None, *, chunk_bytes=1000, fails=False, **changes):
        self.content = with_checksum() if content is None else content
        self.chunk_bytes = chunk_bytes
        self.fails = fails
        self.response = status(**changes)
        self.snapshots = 0
        self.is_closed = False

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.is_closed = True

    async def status(self):
        if self.response.leader_id < 0:
            raise StoreUnavailableError("member is gone")
        return self.response

    async def snapshot(self):
        self.snapshots += 1
        for start in range(0, len(self.content), self.chunk_bytes):
            yield self.content[start : start + self.chunk_bytes]
            if self.fails:
                raise StoreUnavailableError("connection broke off")
