"""`History`: recent commits of an in-process store, shared by its watches.

A watch has no queue of its own: it remembers its revision and reads from the shared history. A
watch that falls behind the oldest commit in the history gets `COMPACTED`, without any cost for
other watches.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import Event, EventKind

COMMITS_MAX: Final = 1000
"""How many commits are kept; watches in the same process are only a few behind."""


class History:
    """The events of recent commits; revisions are consecutive."""

    def __init__(self, revision: int, commits_max: int = COMMITS_MAX) -> None:
        self.compacted_revision = revision
        """The last revision that is not in the history."""
        self._commits: list[list[Event]] = []
        self._commits_max = commits_max
        self._changed = asyncio.Event()
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
        self._notify()

    def close(self) -> None:
        self._closed = True
        self._notify()

    async def watch(self, prefix: str, after_revision: int) -> AsyncGenerator[list[Event], None]:
        """See `MetadataStore.watch`."""
        assert prefix, "the prefix is empty"
        while True:
            changed = self._changed
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

    def _notify(self) -> None:
        # Replace the event: watches that hold the old one see it set, so that none misses a commit.
        self._changed.set()
        self._changed = asyncio.Event()
