"""An object store in memory, for tests and simulations.

It satisfies the contract of `store`, is deterministic, and copies bytes once, when they are stored;
readers share them.
"""

import asyncio
from bisect import bisect_left, insort
from collections.abc import AsyncIterator, Callable, Sequence

from kafscale.errors import ObjectChangedError, ObjectExistsError, ObjectNotFoundError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import PAGE_KEYS, ObjectInfo, check_key, check_prefix


class MemoryObjectStore:
    """Objects in a dictionary, with a sorted list of keys."""

    __slots__ = ("_clock", "_keys", "_objects", "_put_count", "_yields")

    def __init__(self, clock: Callable[[], int] = lambda: 0, *, yields: bool = False) -> None:
        """`clock` returns milliseconds; with `yields`, every call lets other tasks run."""
        self._clock = clock
        self._yields = yields
        self._keys: list[str] = []
        self._objects: dict[str, tuple[bytes, int, str]] = {}
        """The content, when it was stored, and its ETag."""
        self._put_count = 0

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        check_key(key)
        assert any(map(len, parts)), "an object has at least one byte"
        await self._breathe()
        if key not in self._objects:
            insort(self._keys, key)
        elif create:
            raise ObjectExistsError(key)
        self._store(key, parts)

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        check_key(key)
        await self._breathe()
        if key not in self._objects or self._objects[key][2] != etag:
            raise ObjectChangedError(key)
        self._store(key, parts)

    async def get(self, key: str) -> memoryview:
        await self._breathe()
        return self._view(key)

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        assert 0 <= start < stop
        await self._breathe()
        return self._view(key)[start:stop]

    async def get_suffix(self, key: str, length: int) -> memoryview:
        assert length > 0
        await self._breathe()
        return self._view(key)[-length:]

    async def head(self, key: str) -> ObjectInfo:
        await self._breathe()
        return self._info(key)

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """Like S3: each page shows the store at the time it is requested."""
        check_prefix(prefix)
        last = prefix
        while True:
            await self._breathe()
            first = bisect_left(self._keys, last)
            keys = [
                key
                for key in self._keys[first : first + PAGE_KEYS + 1]
                if key.startswith(prefix) and key != last
            ][:PAGE_KEYS]
            if not keys:
                return
            last = keys[-1]
            yield [self._info(key) for key in keys]

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        await self._breathe()
        for key in keys:
            if self._objects.pop(key, None) is not None:
                del self._keys[bisect_left(self._keys, key)]

    async def close(self) -> None:
        """Nothing to close; the objects remain."""

    async def _breathe(self) -> None:
        if self._yields:
            await asyncio.sleep(0)

    def _store(self, key: str, parts: Sequence[Buffer]) -> None:
        self._put_count += 1
        self._objects[key] = (b"".join(parts), self._clock(), str(self._put_count))

    def _view(self, key: str) -> memoryview:
        check_key(key)
        stored = self._objects.get(key)
        if stored is None:
            raise ObjectNotFoundError(key)
        return memoryview(stored[0])

    def _info(self, key: str) -> ObjectInfo:
        size_bytes = len(self._view(key))
        _, modified_ms, etag = self._objects[key]
        return ObjectInfo(key=key, size_bytes=size_bytes, modified_ms=modified_ms, etag=etag)
