"""A metadata store whose watches can be interrupted."""

from contextlib import aclosing

from kafscale.errors import StoreUnavailableError


class InterruptibleStore:
    """Wraps a store; while `interrupted` is set, watches fail at the next event and lose it.

    If `ends_silently` is set too, watches end without an error.
    """

    def __init__(self, store):
        self._store = store
        self.interrupted = False
        self.ends_silently = False
        self.watches = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def watch(self, prefix, after_revision):
        self.watches += 1
        if self._is_interrupted():
            return
        async with aclosing(self._store.watch(prefix, after_revision)) as stream:
            async for events in stream:
                if self._is_interrupted():
                    return
                yield events

    def _is_interrupted(self):
        if self.interrupted and not self.ends_silently:
            raise StoreUnavailableError("interrupted")
        return self.interrupted
