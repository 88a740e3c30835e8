"""`History` and `Leases` of an in-process store.

The history has the recent commits. A watch has no queue of its own: it remembers its revision and
reads from the shared history. A watch that falls behind the oldest commit in the history gets
`COMPACTED`, without any cost for other watches.

A lease ends when the given clock reaches its deadline. A timer ends leases on time, and every store
operation calls `sweep` first, so that no operation sees keys of an ended lease. The store deletes
the keys.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from kafscale.aio.events import Notifier
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import Event, EventKind

COMMITS_MAX: Final = 1000
"""How many commits are kept; watches in the same process are only a few behind."""

Clock = Callable[[], int]
"""Returns monotonic milliseconds."""


class History:
    """The events of recent commits; revisions are consecutive."""

    def __init__(self, revision: int, commits_max: int = COMMITS_MAX) -> None:
        self.compacted_revision = revision
        """The last revision that is not in the history."""
        self._commits: list[list[Event]] = []
        self._commits_max = commits_max
        self._changes = Notifier()
        self._closed = False

    @property
    def revision(self) -> int:
        """The revision of the last commit."""
        return self.compacted_revision + len(self._commits)

    def append(self, events: list[Event]) -> None:
        """Add a commit and wake the watches."""
        assert events
        assert all(event.mod_revision == self.revision + 1 for event in events)
        self._commits.append(events)
        # Drop half at once to amortize the cost.
        if len(self._commits) > self._commits_max:
            dropped = len(self._commits) - self._commits_max // 2
            del self._commits[:dropped]
            self.compacted_revision += dropped
        self._changes.notify()

    def close(self) -> None:
        self._closed = True
        self._changes.notify()

    async def watch(self, prefix: str, after_revision: int) -> AsyncGenerator[list[Event], None]:
        """See `MetadataStore.watch`."""
        assert prefix, "the prefix is empty"
        while True:
            changed = self._changes.next_event()
            if self._closed:
                raise StoreUnavailableError("the metadata store is closed")
            if after_revision < self.compacted_revision:
                yield [Event(EventKind.COMPACTED, prefix, b"", self.compacted_revision)]
                return
            commits = self._commits[after_revision - self.compacted_revision :]
            after_revision = max(after_revision, self.revision)
            events = [
                event for commit in commits for event in commit if event.key.startswith(prefix)
            ]
            if events:
                yield events
            else:
                await changed.wait()


class Leases:
    """Leases by id, with TTL and deadline."""

    def __init__(self, clock: Clock, end: Callable[[int], None]) -> None:
        self._clock = clock
        self._end = end
        self._last = 0
        self._leases: dict[int, tuple[int, int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, lease: int) -> bool:
        return lease in self._leases

    def grant(self, ttl_ms: int) -> int:
        assert ttl_ms > 0, ttl_ms
        self._last += 1
        self._leases[self._last] = (ttl_ms, self._clock() + ttl_ms)
        self._schedule()
        return self._last

    def keep_alive(self, lease: int) -> bool:
        self.sweep()
        if lease not in self._leases:
            return False
        ttl_ms, _ = self._leases[lease]
        self._leases[lease] = (ttl_ms, self._clock() + ttl_ms)
        return True

    def revoke(self, lease: int) -> None:
        if self._leases.pop(lease, None):
            self._end(lease)

    def sweep(self) -> None:
        """End all leases whose deadline has passed."""
        now_ms = self._clock()
        expired = [
            lease for lease, (_, deadline_ms) in self._leases.items() if deadline_ms <= now_ms
        ]
        for lease in expired:
            self.revoke(lease)

    def close(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._leases.clear()

    def _schedule(self) -> None:
        """Set the timer to the next deadline; a renewed deadline is noticed when it fires."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._leases:
            deadline_ms = min(deadline_ms for _, deadline_ms in self._leases.values())
            delay_ms = max(1, deadline_ms - self._clock())
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.sweep()
        self._schedule()
