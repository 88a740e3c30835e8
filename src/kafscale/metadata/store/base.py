"""`MetadataStore`: an ordered key-value store with revisions, in etcd's terms.

Invariants of every implementation:

1. Linearizable: a read sees every commit that was acknowledged before the read started.
2. The store has one revision counter. A commit that changes something increments it by one; a key's
   `mod_revision` is the revision of its last change, or 0 if it does not exist. A commit that
   changes nothing has no revision of its own.
3. A commit is atomic: all operations are applied if all compares hold, else none.
4. A watch reports every change under its prefix after the given revision, in order and once; the
   changes of one commit are in one list. If that revision was compacted, the watch reports
   `COMPACTED` and ends: read the range again and watch from its revision.
5. Keys under a lease are deleted in one commit when the lease ends. A put under a lease that has
   ended fails its commit, like a compare that does not hold.

Failures raise `StoreUnavailableError`; a commit that fails this way may have been applied or not.
`schema.keys` defines the keys, `schema.model` the values.
"""

import asyncio
import enum
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

import msgspec

from kafscale.errors import StoreUnavailableError

OPERATIONS_MAX: Final = 128
"""etcd's default limit of operations, and of compares, in one transaction."""

COMMIT_BYTES_MAX: Final = 1_500_000
"""etcd's request limit (1.5 MiB), minus some space for overhead."""

NO_LEASE: Final = 0


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A key with its value and revisions."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int
    lease: int = NO_LEASE


class Snapshot(msgspec.Struct, frozen=True):
    """All entries under a prefix, ascending by key, at one revision."""

    entries: tuple[Entry, ...]
    revision: int


class Compare(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A condition on one key that must hold for a commit."""

    key: str
    mod_revision: int | None = None
    """0 for a key that must not exist."""
    create_revision: int | None = None
    """Holds while the key is changed, but not if it is deleted and created again."""
    value: bytes | None = None

    def __post_init__(self) -> None:
        assert [self.mod_revision, self.create_revision, self.value].count(None) == 2, self

    def holds(self, entry: Entry | None) -> bool:
        """Evaluate the condition for the entry of the key."""
        if self.mod_revision is not None:
            return self.mod_revision == (entry.mod_revision if entry else 0)
        if self.create_revision is not None:
            return self.create_revision == (entry.create_revision if entry else 0)
        return entry is not None and entry.value == self.value


class Put(msgspec.Struct, frozen=True, gc=False):
    """Set a key, until the lease ends if one is given."""

    key: str
    value: bytes
    lease: int = NO_LEASE


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Delete a key; a missing key is no error."""

    key: str


class DeletePrefix(msgspec.Struct, frozen=True, gc=False):
    """Delete all keys with a prefix; counts as one operation."""

    prefix: str


Operation = Put | Delete | DeletePrefix


class Committed(msgspec.Struct, frozen=True, gc=False):
    """The result of a commit."""

    succeeded: bool
    revision: int
    """The revision of the commit; if it changed nothing, that of the store at the time."""


class EventKind(enum.Enum):
    """The kind of a watch event."""

    PUT = "put"
    DELETE = "delete"
    COMPACTED = "compacted"
    """The requested history is compacted; the watch ends."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change of one key."""

    kind: EventKind
    key: str
    """The changed key; for `COMPACTED` the prefix of the watch."""
    value: bytes
    """The new value; empty unless the event is a put."""
    mod_revision: int
    """The revision of the change; for `COMPACTED` the last compacted revision."""
    create_revision: int = 0
    """Set for a put."""
    lease: int = NO_LEASE

    def entry(self) -> Entry | None:
        """The entry of the key after the event."""
        if self.kind is not EventKind.PUT:
            return None
        return Entry(self.key, self.value, self.create_revision, self.mod_revision, self.lease)


class MetadataStore(Protocol):
    """The operations of a metadata store. Prefixes must not be empty."""

    async def get(self, key: str) -> Entry | None: ...

    async def range(self, prefix: str) -> Snapshot: ...

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        """Apply all operations if all compares hold, else none; a key may occur only once."""

    def watch(self, prefix: str, after_revision: int) -> AsyncGenerator[list[Event], None]: ...

    async def grant(self, ttl_ms: int) -> int:
        """Grant a lease that ends after `ttl_ms` unless it is kept alive."""

    async def keep_alive(self, lease: int) -> bool:
        """Renew a lease; false if it has ended."""

    async def revoke(self, lease: int) -> None:
        """End a lease and delete its keys; a lease that has ended is no error."""

    async def close(self) -> None:
        """Close the store; open watches fail."""


def absent(key: str) -> Compare:
    return Compare(key=key, mod_revision=0)


def unchanged(entry: Entry) -> Compare:
    return Compare(key=entry.key, mod_revision=entry.mod_revision)


@asynccontextmanager
async def time_limit(failure: str, limit_ms: int) -> AsyncIterator[None]:
    """Raise `StoreUnavailableError` that begins with `failure` if the block takes longer."""
    try:
        async with asyncio.timeout(limit_ms / 1000):
            yield
    except TimeoutError as error:
        raise StoreUnavailableError(f"{failure} within {limit_ms} ms") from error


def prefix_end(prefix: str) -> str:
    """The first string after all strings with the prefix.

    >>> prefix_end("/kafscale/topics/")
    '/kafscale/topics0'
    """
    assert prefix, "the prefix is empty"
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def check_commit(compares: Sequence[Compare], operations: Sequence[Operation]) -> None:
    """Assert etcd's limits, so that no other store accepts what etcd rejects."""
    assert len(compares) <= OPERATIONS_MAX, len(compares)
    assert len(operations) <= OPERATIONS_MAX, len(operations)
    puts = [operation for operation in operations if isinstance(operation, Put)]
    assert sum(len(put.key) + len(put.value) for put in puts) <= COMMIT_BYTES_MAX
    keys = [operation.key for operation in operations if not isinstance(operation, DeletePrefix)]
    prefixes = tuple(
        operation.prefix for operation in operations if isinstance(operation, DeletePrefix)
    )
    assert len(set(keys)) == len(keys), "a key occurs twice"
    assert not any(put.key.startswith(prefixes) for put in puts), "a key occurs twice"
