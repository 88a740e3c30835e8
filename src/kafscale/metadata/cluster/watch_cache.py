"""A prefix of the metadata store, kept current in memory.

The laws: who reads a mirror sees a state that the store once had, and never an older one after a
newer; `changed` is called once for every change of an entry, after the mirror shows it, with what
is there now. A store that cannot be reached leaves the mirror as it was, until the watch goes on
where it stopped; one that has forgotten what happened meanwhile is read again, and the difference
is what has changed. What the entries mean is left to those who own the mirror.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Final

from kafscale.errors import OperatingError, StoreUnavailableError
from kafscale.metadata.store.base import Entry, Event, EventKind, MetadataStore
from kafscale.observability.logging import get_logger

RETRY_MS: Final = 500
"""How long a broken watch waits before it asks again."""

_log = get_logger(__name__)


class WatchCache:
    """The entries under a prefix whose keys are wanted; one background task keeps them current."""

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
        self._change_event = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.entries: Mapping[str, Entry] = MappingProxyType(self._entries)
        self.connected = False
        """Whether the watch works; if not, the store may know more than the mirror shows."""

    @property
    def revision(self) -> int:
        """The mirror shows what the store had at this revision."""
        return self._revision

    async def start(self) -> None:
        """Read everything, then follow the store until `close`."""
        assert self._task is None, "started twice"
        await self._load()
        self._task = asyncio.create_task(self._run(), name=f"mirror of {self._prefix}")

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def wait_for_revision(self, revision: int) -> None:
        """Wait until the change of that revision, which must be one of the prefix, is shown."""
        while self._revision < revision:
            await self.wait_for_change()

    async def wait_for_change(self) -> None:
        """Wait for the next change of the mirror."""
        await self._change_event.wait()

    async def _run(self) -> None:
        while True:
            try:
                if not self.connected:
                    # A watch says only when it breaks. That the store answers again is asked for.
                    await self._store.get(self._prefix)
                    self.connected = True
                await self._watch()
                continue
            except OperatingError as error:
                _log.warning("metadata watch broken", prefix=self._prefix, reason=str(error))
            except Exception:  # noqa: BLE001 - logged, as any edge does.
                # A fault of ours is told, but does not leave the mirror to go stale.
                _log.exception("metadata watch failed", prefix=self._prefix)
            self.connected = False
            await asyncio.sleep(RETRY_MS / 1000)

    async def _watch(self) -> None:
        async with aclosing(self._store.watch(self._prefix, self._revision)) as lists:
            async for events in lists:
                if events[0].kind is EventKind.COMPACTED:
                    _log.info("metadata read again", prefix=self._prefix, revision=self._revision)
                    await self._load()
                    return
                for event in events:
                    self._apply(event)
                self._publish(events[-1].mod_revision)
        raise StoreUnavailableError("the watch has ended")

    async def _load(self) -> None:
        snapshot = await self._store.range(self._prefix)
        found = {entry.key: entry for entry in snapshot.entries if self._key_filter(entry.key)}
        for key in [key for key in self._entries if key not in found]:
            self._set(key, None)
        for key, entry in found.items():
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
        self._change_event.set()
        self._change_event = asyncio.Event()
