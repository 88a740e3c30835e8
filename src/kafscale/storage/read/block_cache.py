"""The block cache: aligned blocks of objects, in a cache of bounded size.

Concurrent readers of a missing block share one fetch. The number of concurrent fetches is limited,
so that consumers that catch up do not delay WAL uploads.
"""

import asyncio
from functools import partial

from kafscale.errors import DamagedObjectError
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.block import BLOCK_BYTES, Block, pieces
from kafscale.storage.read.loading_cache import LoadingCache

LOADS_MAX = 16
"""Limit of concurrent block fetches."""


class BlockCache:
    """Blocks of all objects that readers use."""

    def __init__(self, store: ObjectStore, bytes_max: int) -> None:
        self._store = store
        self._bytes_max = bytes_max
        self._loads = asyncio.Semaphore(LOADS_MAX)
        self._cache: LoadingCache[tuple[str, int], Block] = LoadingCache(bytes_max, len)

    @property
    def size_bytes(self) -> int:
        return self._cache.size_bytes

    async def blocks(self, key: str, start: int, stop: int) -> list[Block]:
        """The blocks of an object that hold a range of it."""
        blocks = []
        for number in range(start // BLOCK_BYTES, (stop - 1) // BLOCK_BYTES + 1):
            block = self._cache.get((key, number))
            if block is None:
                block = await self._cache.load((key, number), partial(self._load, key, number))
            blocks.append(block)
            end = block.start + len(block)
            if end < min(block.start + BLOCK_BYTES, stop):
                raise DamagedObjectError(key, f"it ends at {end}, expected {stop}")
        return blocks

    async def slices(self, key: str, start: int, stop: int) -> list[memoryview]:
        """A range of an object, as one slice per block; nothing is copied."""
        return pieces(await self.blocks(key, start, stop), start, stop)

    async def contiguous(self, key: str, start: int, stop: int) -> memoryview:
        """A range of an object as one buffer; copied if it spans blocks."""
        slices = await self.slices(key, start, stop)
        return slices[0] if len(slices) == 1 else memoryview(b"".join(slices))

    def contains(self, key: str, position: int) -> bool:
        """Whether the byte at a position is cached."""
        return self._cache.get((key, position // BLOCK_BYTES)) is not None

    def prefetch(self, key: str, number: int) -> None:
        """Start fetching a block that will be read soon."""
        if (key, number) not in self._cache:
            self._cache.start((key, number), partial(self._load, key, number))

    def reserve(self, size_bytes: int) -> None:
        """Leave this much of the cache's memory to tails, until called again."""
        self._cache.limit(self._bytes_max - size_bytes)

    def forget(self, *prefixes: str) -> None:
        self._cache.discard(lambda block_key: block_key[0].startswith(prefixes))

    def close(self) -> None:
        self._cache.clear()

    async def _load(self, key: str, number: int) -> Block:
        async with self._loads:
            start = number * BLOCK_BYTES
            return Block(start, await self._store.get_range(key, start, start + BLOCK_BYTES))


def detach(piece: memoryview) -> memoryview:
    """Copy a small piece of a block: a slow client must not hold the whole block for it."""
    return piece if 2 * len(piece) >= BLOCK_BYTES else memoryview(bytes(piece))
