"""`WatchCache`: the entries under a key prefix, kept current in memory by a watch.

Invariants: the cache shows a state that the store had, and never goes back to an older one.
`on_change` is called once per changed entry, after the cache has the new entry. If the store is
unavailable, the cache keeps its entries, and the watch resumes where it stopped. If the revision
was compacted meanwhile, the prefix is read again and the differences are reported as changes.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Final

from kafscale.aio.events import Notifier
from kafscale.errors import OperatingError, StoreUnavailableError
from kafscale.metadata.store.base import Entry, Event, EventKind, MetadataStore
from kafscale.observability.logging import get_logger

RETRY_MS: Final = 500
"""The delay before a failed watch is opened again."""

logger = get_logger(__name__)


class WatchCache:
    """The entries under a prefix whose keys pass `key_filter`; a background task watches them."""

    def __init__(
        self,
        store: MetadataStore,
        prefix: str,
        on_change: Callable[[str, Entry | None], None],
        key_filter: Callable[[str], bool] = lambda _key: True,
    ) -> None:
        self._store = store
        self._prefix = prefix
        self._on_change = on_change
        self._key_filter = key_filter
        self._entries: dict[str, Entry] = {}
        self._revision = 0
        self._changes = Notifier()
        self._task: asyncio.Task[None] | None = None
        self.entries: Mapping[str, Entry] = MappingProxyType(self._entries)
        self.connected = False
        """True while the watch works; if false, the cache may be outdated."""

    @property
    def revision(self) -> int:
        """The store revision that the cache shows."""
        return self._revision

    async def start(self) -> None:
        """Read the prefix, then watch it until `close`."""
        assert self._task is None, "started twice"
        await self._load()
        self._task = asyncio.create_task(self._run(), name=f"watch {self._prefix}")

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def wait_for_revision(self, revision: int) -> None:
        """Wait until the cache shows a change under the prefix that was made at `revision`."""
        await self._changes.wait_for(lambda: self._revision >= revision)

    async def wait_for_change(self) -> None:
        """Wait for the next change."""
        await self._changes.next_event().wait()

    async def _run(self) -> None:
        while True:
            try:
                if not self.connected:
                    # A watch reports failures only, so read a key to learn whether the store is
                    # back.
                    await self._store.get(self._prefix)
                    self.connected = True
                await self._watch()
                continue
            except OperatingError as error:
                logger.warning("metadata watch interrupted", prefix=self._prefix, reason=str(error))
            except Exception:
                # A bug is logged but must not leave the cache outdated.
                logger.exception("metadata watch failed", prefix=self._prefix)
            self.connected = False
            await asyncio.sleep(RETRY_MS / 1000)

    async def _watch(self) -> None:
        async with aclosing(self._store.watch(self._prefix, self._revision)) as watch:
            async for events in watch:
                if events[0].kind is EventKind.COMPACTED:
                    logger.info(
                        "metadata reloaded after compaction",
                        prefix=self._prefix,
                        revision=self._revision,
                    )
                    await self._load()
                    return
                for event in events:
                    self._apply(event)
                self._publish(events[-1].mod_revision)
        raise StoreUnavailableError("the watch ended")

    async def _load(self) -> None:
        snapshot = await self._store.range(self._prefix)
        entries = {entry.key: entry for entry in snapshot.entries if self._key_filter(entry.key)}
        for key in [key for key in self._entries if key not in entries]:
            self._set(key, None)
        for key, entry in entries.items():
            self._set(key, entry)
        self._publish(snapshot.revision)
        self.connected = True

    def _apply(self, event: Event) -> None:
        if self._key_filter(event.key):
            self._set(event.key, event.entry())

    def _set(self, key: str, after: Entry | None) -> None:
        if self._entries.get(key) == after:
            return
        if after is None:
            del self._entries[key]
        else:
            self._entries[key] = after
        self._on_change(key, after)

    def _publish(self, revision: int) -> None:
        self._revision = revision
        self._changes.notify()
