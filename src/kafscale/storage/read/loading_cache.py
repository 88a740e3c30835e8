"""A cache bounded by bytes that loads what it misses, once however many ask for it.

It evicts what was used least recently. A load belongs to nobody: it goes on when the reader that
began it leaves, because others may wait for the same bytes by then.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from kafscale.errors import StoreUnavailableError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LoadingCache(Generic[Key, Value]):
    """An LRU of loaded values, bounded by what they cost together."""

    def __init__(self, bytes_max: int, cost: Callable[[Value], int]) -> None:
        self._bytes_max = bytes_max
        self._cost = cost
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._loads: dict[Key, asyncio.Task[Value]] = {}
        self.size_bytes = 0

    def get(self, key: Key) -> Value | None:
        """The value, if it is here; does not load."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def __contains__(self, key: Key) -> bool:
        """Whether the value is here or on its way; asking does not count as a use."""
        return key in self._values or key in self._loads

    async def load(self, key: Key, loader: Callable[[], Awaitable[Value]]) -> Value:
        """The value, loaded if need be; all who ask for it meanwhile share one load."""
        value = self.get(key)
        if value is not None:
            return value
        load = self.start(key, loader)
        try:
            return await asyncio.shield(load)
        except asyncio.CancelledError:
            reader = asyncio.current_task()
            if load.cancelled() and reader is not None and not reader.cancelling():
                raise StoreUnavailableError("storage has been closed") from None
            raise

    def start(self, key: Key, loader: Callable[[], Awaitable[Value]]) -> asyncio.Task[Value]:
        """Begin to load unless somebody has; the task keeps its own errors from being lost."""
        load = self._loads.get(key)
        if load is None:
            load = asyncio.get_running_loop().create_task(self._load(key, loader))
            load.add_done_callback(_retrieve)
            self._loads[key] = load
        return load

    def limit(self, bytes_max: int) -> None:
        """Take no more than so many bytes from now on."""
        self._bytes_max = bytes_max
        self._evict()

    def discard(self, condition: Callable[[Key], bool]) -> None:
        """Forget all values whose keys meet the condition, also those that are on their way."""
        for key in [key for key in self._values if condition(key)]:
            self.size_bytes -= self._cost(self._values.pop(key))
        for key in [key for key in self._loads if condition(key)]:
            del self._loads[key]

    def clear(self) -> None:
        for load in self._loads.values():
            load.cancel()
        self._loads.clear()
        self._values.clear()
        self.size_bytes = 0

    async def _load(self, key: Key, loader: Callable[[], Awaitable[Value]]) -> Value:
        try:
            value = await loader()
        finally:
            is_wanted = self._loads.get(key) is asyncio.current_task()
            if is_wanted:
                del self._loads[key]
        if not is_wanted:
            return value  # It was forgotten before it came; what it was loaded from may be gone.
        self._values[key] = value
        self.size_bytes += self._cost(value)
        self._evict()
        return value

    def _evict(self) -> None:
        while self.size_bytes > self._bytes_max and len(self._values) > 1:
            _, evicted = self._values.popitem(last=False)
            self.size_bytes -= self._cost(evicted)


def _retrieve(load: "asyncio.Task[Value]") -> None:
    # Read-ahead that fails is nobody's business: whoever needs the bytes asks again and is told.
    if not load.cancelled():
        load.exception()
