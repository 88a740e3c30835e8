"""A metadata store that can become unreachable, as behind a broken network."""

import asyncio
from contextlib import aclosing

from kafscale.errors import StoreUnavailableError


class UnreachableStore:
    """Wraps a store; every call fails while `broken` is set, and watches may be late."""

    def __init__(self, store):
        self._store = store
        self.broken = False
        self.late_s = {}
        """Delays of watch events in seconds, by prefix."""

    def __getattr__(self, verb):
        method = getattr(self._store, verb)

        async def call(*arguments, **named):
            self._check()
            response = await method(*arguments, **named)
            self._check()
            return response

        return call

    async def watch(self, prefix, after_revision):
        self._check()
        async with aclosing(self._store.watch(prefix, after_revision)) as stream:
            async for events in stream:
                await asyncio.sleep(self.late_s.get(prefix, 0))
                self._check()
                yield events

    def _check(self):
        if self.broken:
            raise StoreUnavailableError("unreachable, on purpose")
