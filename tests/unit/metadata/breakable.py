"""A store whose watches can be cut off, as by a network."""

from contextlib import aclosing

from kafscale.errors import StoreUnavailableError


class BreakableStore:
    """Another store, until `broken` is set: then watches fail at the next event, and lose it.

    Where `silent` is set as well, they do not fail but just end.
    """

    def __init__(self, store):
        self._store = store
        self.broken = False
        self.silent = False
        self.watches = 0

    def __getattr__(self, verb):
        return getattr(self._store, verb)

    async def watch(self, prefix, after_revision):
        self.watches += 1
        if self._is_cut_off():
            return
        async with aclosing(self._store.watch(prefix, after_revision)) as stream:
            async for events in stream:
                if self._is_cut_off():
                    return
                yield events

    def _is_cut_off(self):
        if self.broken and not self.silent:
            raise StoreUnavailableError("cut off")
        return self.broken
