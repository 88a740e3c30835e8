"""The metadata store as everybody above sees it: an ordered key-value store in etcd's vocabulary.

The laws, which every implementation keeps:

1. Linearizable. A read sees every commit that was answered before the read began.
2. One counter of revisions for the whole store. A commit that changes something takes the next
   revision, whatever it changes; a key's `mod_revision` is that of its last change, 0 if it has
   none. A commit that changes nothing takes no revision.
3. A commit is atomic: all its operations or none, and none unless every compare holds.
4. A watch tells of every change of its prefix after the given revision, in order, none twice; the
   changes of one commit come in one list. Where the store no longer knows what happened since that
   revision, the watch says `COMPACTED` once, and ends: read the range again and watch from there.
5. Keys put under a lease are deleted when it ends, in one commit. A put under a lease that has
   ended fails its commit, like a compare that does not hold.

What fails, fails as `StoreUnavailableError`; a commit that fails so may or may not have been made.
Which keys there are is said in `keys`, what their values mean in `model`.
"""

import enum
from collections.abc import AsyncGenerator, Sequence
from typing import Final, Protocol

import msgspec

OPERATIONS_MAX: Final = 128
"""As many operations, and as many compares, as etcd takes in one commit by default."""

COMMIT_BYTES_MAX: Final = 1_500_000
"""What fits into one request to etcd (1.5 MiB), with room for what goes round it."""

NO_LEASE: Final = 0


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What is kept under a key."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int
    lease: int = NO_LEASE


class Snapshot(msgspec.Struct, frozen=True):
    """All entries under a prefix, ascending by key, as they were at one revision."""

    entries: tuple[Entry, ...]
    revision: int


class Compare(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What must hold for a commit to be made: one thing about one key."""

    key: str
    mod_revision: int | None = None
    """0 for a key that must be absent."""
    create_revision: int | None = None
    """Holds as long as the key is changed, but not deleted and made again."""
    value: bytes | None = None

    def __post_init__(self) -> None:
        assert [self.mod_revision, self.create_revision, self.value].count(None) == 2, self

    def holds(self, entry: Entry | None) -> bool:
        """Whether it holds for what is kept under the key."""
        if self.mod_revision is not None:
            return self.mod_revision == (entry.mod_revision if entry else 0)
        if self.create_revision is not None:
            return self.create_revision == (entry.create_revision if entry else 0)
        return entry is not None and entry.value == self.value


class Put(msgspec.Struct, frozen=True, gc=False):
    """Keep `value` under `key`, until the lease ends if one is given."""

    key: str
    value: bytes
    lease: int = NO_LEASE


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Delete a key; one that is not there is no error."""

    key: str


class DeletePrefix(msgspec.Struct, frozen=True, gc=False):
    """Delete every key that begins with `prefix`, however many; it counts as one operation."""

    prefix: str


Operation = Put | Delete | DeletePrefix


class Committed(msgspec.Struct, frozen=True, gc=False):
    """How a commit ended."""

    succeeded: bool
    revision: int
    """That of the commit; where it changed nothing, that of the store when it was tried."""


class EventKind(enum.Enum):
    """What has happened."""

    PUT = "put"
    DELETE = "delete"
    COMPACTED = "compacted"
    """The store has forgotten what happened in between; the watch ends with this."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change of one key."""

    kind: EventKind
    key: str
    """That of the change; the prefix where the watch was compacted."""
    value: bytes
    """What was put; empty otherwise."""
    mod_revision: int
    """That of the change; where the watch was compacted, the last one that is forgotten."""
    create_revision: int = 0
    """Of the key that was put."""
    lease: int = NO_LEASE

    def entry(self) -> Entry | None:
        """What is kept under the key since."""
        if self.kind is not EventKind.PUT:
            return None
        return Entry(self.key, self.value, self.create_revision, self.mod_revision, self.lease)


class MetadataStore(Protocol):
    """The verbs. Prefixes are never empty."""

    async def get(self, key: str) -> Entry | None: ...

    async def range(self, prefix: str) -> Snapshot: ...

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        """Make all operations if all compares hold, else none; no key may be touched twice."""

    def watch(self, prefix: str, after_revision: int) -> AsyncGenerator[list[Event], None]: ...

    async def grant(self, ttl_ms: int) -> int:
        """A new lease, which ends `ttl_ms` from now unless it is kept alive."""

    async def keep_alive(self, lease: int) -> bool:
        """Let the lease last its whole time again; false if it has ended, and so is lost."""

    async def revoke(self, lease: int) -> None:
        """End the lease now, and delete its keys; one that has ended is no error."""

    async def close(self) -> None:
        """Let go of everything; watches that are still open fail."""


def absent(key: str) -> Compare:
    return Compare(key=key, mod_revision=0)


def unchanged(entry: Entry) -> Compare:
    return Compare(key=entry.key, mod_revision=entry.mod_revision)


def prefix_end(prefix: str) -> str:
    """The first string after all those that begin with `prefix`.

    >>> prefix_end("/kafscale/topics/")
    '/kafscale/topics0'
    """
    assert prefix, "a prefix is never empty"
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def check_commit(compares: Sequence[Compare], operations: Sequence[Operation]) -> None:
    """Assert what etcd would refuse, so that no other store accepts it either."""
    assert len(compares) <= OPERATIONS_MAX, len(compares)
    assert len(operations) <= OPERATIONS_MAX, len(operations)
    puts = [operation for operation in operations if isinstance(operation, Put)]
    assert sum(len(put.key) + len(put.value) for put in puts) <= COMMIT_BYTES_MAX
    keys = [operation.key for operation in operations if not isinstance(operation, DeletePrefix)]
    prefixes = tuple(
        operation.prefix for operation in operations if isinstance(operation, DeletePrefix)
    )
    assert len(set(keys)) == len(keys), "a key is touched twice"
    assert not any(put.key.startswith(prefixes) for put in puts), "a key is touched twice"
