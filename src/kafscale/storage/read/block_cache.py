"""Objects in aligned blocks: read once, kept in a bounded cache, handed out as slices.

However many readers want a block that is not here, it is fetched once. Readers that catch up share
a few fetches at a time, so that they do not crowd out the WAL.
"""

import asyncio

from kafscale.errors import DamagedObjectError
from kafscale.storage.counters import Statistics
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.loading_cache import LoadingCache

BLOCK_BYTES = 4 * 1024 * 1024
"""Large enough that a request is worth its price, small enough that a cold read starts soon."""

LOADS_MAX = 16
"""How many blocks are fetched at once."""


class Blocks:
    """The blocks of all objects that readers want."""

    def __init__(self, store: ObjectStore, bytes_max: int, statistics: Statistics) -> None:
        self._store = store
        self._bytes_max = bytes_max
        self._statistics = statistics
        self._loads = asyncio.Semaphore(LOADS_MAX)
        self._cache: LoadingCache[tuple[str, int], memoryview] = LoadingCache(bytes_max, len)

    @property
    def size_bytes(self) -> int:
        return self._cache.size_bytes

    async def slices(self, key: str, start: int, stop: int) -> list[memoryview]:
        """A range of an object, in as many pieces as it has blocks; nothing is copied."""
        slices = []
        while start < stop:
            number, position = divmod(start, BLOCK_BYTES)
            block = self._cache.get((key, number))
            if block is None:
                self._statistics.block_misses += 1
                block = await self._cache.load((key, number), self._loader(key, number))
            else:
                self._statistics.block_hits += 1
            piece = block[position : position + stop - start]
            if not piece:
                raise DamagedObjectError(key, f"it ends at {start} instead of {stop}")
            slices.append(piece)
            start += len(piece)
        return slices

    async def contiguous(self, key: str, start: int, stop: int) -> memoryview:
        """A range of an object in one piece, which is a copy where it lies in two blocks."""
        slices = await self.slices(key, start, stop)
        return slices[0] if len(slices) == 1 else memoryview(b"".join(slices))

    def holds(self, key: str, position: int) -> bool:
        """Whether the byte at a position can be had without a request."""
        return self._cache.get((key, position // BLOCK_BYTES)) is not None

    def expect(self, key: str, number: int) -> None:
        """Begin to fetch a block that somebody is going to want."""
        if (key, number) not in self._cache:
            self._cache.start((key, number), self._loader(key, number))

    def lend(self, size_bytes: int) -> None:
        """Leave so much of the memory to others, until told otherwise."""
        self._cache.limit(self._bytes_max - size_bytes)

    def forget(self, *prefixes: str) -> None:
        self._cache.discard(lambda place: place[0].startswith(prefixes))

    def close(self) -> None:
        self._cache.clear()

    def _loader(self, key: str, number: int) -> "_Loader":
        return _Loader(self._store, self._loads, key, number)


class _Loader:
    """Fetches one block; a class rather than a closure, because loops make many of them."""

    __slots__ = ("_key", "_loads", "_number", "_store")

    def __init__(self, store: ObjectStore, loads: asyncio.Semaphore, key: str, number: int) -> None:
        self._store = store
        self._loads = loads
        self._key = key
        self._number = number

    async def __call__(self) -> memoryview:
        async with self._loads:
            start = self._number * BLOCK_BYTES
            return await self._store.get_range(self._key, start, start + BLOCK_BYTES)
