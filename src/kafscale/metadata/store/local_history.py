"""What has happened lately in a store of this process, and those who wait for more.

The law: a watcher has no queue of its own. It remembers how far it has read, and reads on in the
one history that all share; who falls so far behind that the history has dropped what it needs is
told so (`COMPACTED`), and costs nobody else anything. Making revisions is left to the stores.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import Event, EventKind

COMMITS_MAX: Final = 1000
"""How many of the last commits are remembered: watchers of the same process are late by a few."""


class History:
    """The events of the last commits, by revision, which grow by one from commit to commit."""

    def __init__(self, revision: int, commits_max: int = COMMITS_MAX) -> None:
        self.compacted_revision = revision
        """The last revision of which nothing is remembered."""
        self._commits: list[list[Event]] = []
        self._commits_max = commits_max
        self._bell = asyncio.Event()
        self._closed = False

    @property
    def revision(self) -> int:
        """That of the last commit."""
        return self.compacted_revision + len(self._commits)

    def append(self, events: list[Event]) -> None:
        """Remember a commit, and wake all who wait for one."""
        assert events
        assert all(event.mod_revision == self.revision + 1 for event in events)
        self._commits.append(events)
        # Half of it is dropped at once, so that dropping costs little for each commit.
        if len(self._commits) > self._commits_max:
            dropped = len(self._commits) - self._commits_max // 2
            del self._commits[:dropped]
            self.compacted_revision += dropped
        self._ring()

    def close(self) -> None:
        self._closed = True
        self._ring()

    async def watch(self, prefix: str, after_revision: int) -> AsyncGenerator[list[Event], None]:
        """See `MetadataStore.watch`."""
        assert prefix, "a prefix is never empty"
        while True:
            bell = self._bell
            if self._closed:
                raise StoreUnavailableError("the metadata store is closed")
            if after_revision < self.compacted_revision:
                yield [Event(EventKind.COMPACTED, prefix, b"", self.compacted_revision)]
                return
            news = self._commits[after_revision - self.compacted_revision :]
            after_revision = max(after_revision, self.revision)
            events = [event for commit in news for event in commit if event.key.startswith(prefix)]
            if events:
                yield events
            else:
                await bell.wait()

    def _ring(self) -> None:
        # A new bell for those who come later: the one that has rung stays rung for those who took
        # it before they looked, so that nobody sleeps through a commit.
        self._bell.set()
        self._bell = asyncio.Event()
