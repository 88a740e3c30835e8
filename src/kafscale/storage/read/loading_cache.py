"""An LRU cache bounded by bytes, which loads missing values; concurrent readers share one load.

A load continues when the reader that started it is cancelled, because other readers may wait for
the same value.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from kafscale.errors import StoreUnavailableError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LoadingCache(Generic[Key, Value]):
    """An LRU cache of loaded values, bounded by their total cost."""

    def __init__(self, bytes_max: int, cost: Callable[[Value], int]) -> None:
        self._bytes_max = bytes_max
        self._cost = cost
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._loads: dict[Key, asyncio.Task[Value]] = {}
        self.size_bytes = 0

    def get(self, key: Key) -> Value | None:
        """The cached value, or None; does not load."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def __contains__(self, key: Key) -> bool:
        """Whether the value is cached or being loaded; does not count as a use."""
        return key in self._values or key in self._loads

    async def load(self, key: Key, loader: Callable[[], Awaitable[Value]]) -> Value:
        """The value, loaded if necessary; concurrent callers share one load."""
        value = self.get(key)
        if value is not None:
            return value
        load = self.start(key, loader)
        try:
            return await asyncio.shield(load)
        except asyncio.CancelledError:
            reader = asyncio.current_task()
            if load.cancelled() and reader is not None and not reader.cancelling():
                raise StoreUnavailableError("storage is closed") from None
            raise

    def start(self, key: Key, loader: Callable[[], Awaitable[Value]]) -> asyncio.Task[Value]:
        """Start loading unless a load is in progress; errors are kept in the task."""
        load = self._loads.get(key)
        if load is None:
            load = asyncio.get_running_loop().create_task(self._load(key, loader))
            load.add_done_callback(_retrieve)
            self._loads[key] = load
        return load

    def put(self, key: Key, value: Value) -> None:
        """Cache a value that need not be loaded; one that is being loaded is older."""
        self._loads.pop(key, None)
        if (former := self._values.pop(key, None)) is not None:
            self.size_bytes -= self._cost(former)
        self._add(key, value)

    def limit(self, bytes_max: int) -> None:
        """Change the size limit."""
        self._bytes_max = bytes_max
        self._evict()

    def discard(self, condition: Callable[[Key], bool]) -> None:
        """Drop all values whose keys meet the condition, including those being loaded."""
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
            is_current = self._loads.get(key) is asyncio.current_task()
            if is_current:
                del self._loads[key]
        if not is_current:
            return value  # Discarded while loading; the object may have changed.
        self._add(key, value)
        return value

    def _add(self, key: Key, value: Value) -> None:
        self._values[key] = value
        self.size_bytes += self._cost(value)
        self._evict()

    def _evict(self) -> None:
        while self.size_bytes > self._bytes_max and len(self._values) > 1:
            _, evicted = self._values.popitem(last=False)
            self.size_bytes -= self._cost(evicted)


def _retrieve(load: "asyncio.Task[Value]") -> None:
    # Failed read-ahead is ignored: a reader that needs the block loads it again.
    if not load.cancelled():
        load.exception()
