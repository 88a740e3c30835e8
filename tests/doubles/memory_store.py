"""`MemoryStore`: a deterministic metadata store in memory, for tests.

Every operation completes before it yields to the event loop, so that commits are in the order of
calls. Data is lost with the process.
"""

import bisect
from collections.abc import AsyncGenerator, Sequence

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import (
    NO_LEASE,
    Committed,
    Compare,
    Delete,
    DeletePrefix,
    Entry,
    Event,
    EventKind,
    Operation,
    Put,
    Snapshot,
    check_commit,
    prefix_end,
)
from kafscale.metadata.store.in_process import COMMITS_MAX, Clock, History, Leases


class MemoryStore:
    """A `MetadataStore` in a dictionary, with a sorted list of keys."""

    def __init__(self, clock: Clock, commits_max: int = COMMITS_MAX) -> None:
        self._entries: dict[str, Entry] = {}
        self._keys: list[str] = []
        self._history = History(0, commits_max)
        self._leases = Leases(clock, self._drop_lease)
        self._closed = False

    async def get(self, key: str) -> Entry | None:
        self._begin()
        return self._entries.get(key)

    async def range(self, prefix: str) -> Snapshot:
        self._begin()
        entries = tuple(self._entries[key] for key in self._keys_under(prefix))
        return Snapshot(entries, self._history.revision)

    async def commit(
        self, compares: Sequence[Compare], operations: Sequence[Operation]
    ) -> Committed:
        check_commit(compares, operations)
        self._begin()
        succeeded = all(c.holds(self._entries.get(c.key)) for c in compares) and all(
            operation.lease == NO_LEASE or operation.lease in self._leases
            for operation in operations
            if isinstance(operation, Put)
        )
        if succeeded:
            self._apply(operations)
        return Committed(succeeded, self._history.revision)

    def watch(self, prefix: str, after_revision: int) -> AsyncGenerator[list[Event], None]:
        return self._history.watch(prefix, after_revision)

    async def grant(self, ttl_ms: int) -> int:
        self._begin()
        return self._leases.grant(ttl_ms)

    async def keep_alive(self, lease: int) -> bool:
        self._begin()
        return self._leases.keep_alive(lease)

    async def revoke(self, lease: int) -> None:
        self._begin()
        self._leases.revoke(lease)

    async def close(self) -> None:
        self._closed = True
        self._leases.close()
        self._history.close()

    def _begin(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the metadata store is closed")
        self._leases.sweep()

    def _keys_under(self, prefix: str) -> list[str]:
        start = bisect.bisect_left(self._keys, prefix)
        return self._keys[start : bisect.bisect_left(self._keys, prefix_end(prefix), start)]

    def _drop_lease(self, lease: int) -> None:
        self._apply([Delete(key) for key in self._keys if self._entries[key].lease == lease])

    def _apply(self, operations: Sequence[Operation]) -> None:
        revision = self._history.revision + 1
        events: list[Event] = []
        for operation in operations:
            match operation:
                case Put():
                    events.append(self._put(operation, revision))
                case Delete():
                    events += self._delete([operation.key], revision)
                case DeletePrefix():
                    events += self._delete(self._keys_under(operation.prefix), revision)
        if events:
            self._history.append(events)

    def _put(self, put: Put, revision: int) -> Event:
        before = self._entries.get(put.key)
        if before is None:
            bisect.insort(self._keys, put.key)
        created = before.create_revision if before else revision
        self._entries[put.key] = Entry(put.key, put.value, created, revision, put.lease)
        return Event(EventKind.PUT, put.key, put.value, revision, created, put.lease)

    def _delete(self, keys: Sequence[str], revision: int) -> list[Event]:
        events = []
        for key in keys:
            if self._entries.pop(key, None):
                del self._keys[bisect.bisect_left(self._keys, key)]
                events.append(Event(EventKind.DELETE, key, b"", revision))
        return events
