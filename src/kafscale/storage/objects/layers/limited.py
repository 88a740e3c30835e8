"""Limits the concurrent requests of a broker to a bucket, with slots reserved for urgent ones.

Invariants: at most `requests_max` requests are in flight. Ordinary requests leave `reserved_count`
slots free, so that urgent ones (WAL uploads, which producers wait for) do not queue behind
consumers that catch up. Each kind is served first in, first out. Each page of a listing is one
request. The time spent waiting here is not store latency, so the metrics layer is below this one.

The creator of the store decides which requests are urgent.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

_Waiters = deque[asyncio.Future[None]]


class Slots:
    """A semaphore with two priorities."""

    __slots__ = ("_free", "_ordinary", "_reserved", "_urgent")

    def __init__(self, count: int, reserved_count: int) -> None:
        assert 0 <= reserved_count < count, "ordinary requests would wait forever"
        self._free = count
        self._reserved = reserved_count
        self._urgent: _Waiters = deque()
        self._ordinary: _Waiters = deque()

    @asynccontextmanager
    async def acquire(self, *, urgent: bool) -> AsyncIterator[None]:
        await self._acquire(urgent=urgent)
        try:
            yield
        finally:
            self._free += 1
            self._grant()

    async def _acquire(self, *, urgent: bool) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._urgent if urgent else self._ordinary).append(waiter)
        self._grant()
        if waiter.done():
            return
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                # The slot was granted at the moment of the cancellation.
                self._free += 1
                self._grant()
            raise

    def _grant(self) -> None:
        while self._free:
            if self._urgent:
                waiter = self._urgent.popleft()
            elif self._ordinary and self._free > self._reserved:
                waiter = self._ordinary.popleft()
            else:
                return
            if not waiter.done():
                self._free -= 1
                waiter.set_result(None)


class LimitedObjectStore:
    """Limits the concurrent requests to another store."""

    __slots__ = ("_inner", "_is_urgent", "_slots")

    def __init__(
        self,
        inner: ObjectStore,
        *,
        requests_max: int,
        reserved_count: int = 0,
        is_urgent: Callable[[str, str], bool] = lambda _operation, _key: False,
    ) -> None:
        """`is_urgent` is called with the operation and its key."""
        self._inner = inner
        self._slots = Slots(requests_max, reserved_count)
        self._is_urgent = is_urgent

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        async with self._slots.acquire(urgent=self._is_urgent("put", key)):
            await self._inner.put(key, parts, create=create)

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        async with self._slots.acquire(urgent=self._is_urgent("put", key)):
            await self._inner.replace(key, parts, etag)

    async def get(self, key: str) -> memoryview:
        async with self._slots.acquire(urgent=self._is_urgent("get", key)):
            return await self._inner.get(key)

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        async with self._slots.acquire(urgent=self._is_urgent("get_range", key)):
            return await self._inner.get_range(key, start, stop)

    async def get_suffix(self, key: str, length: int) -> memoryview:
        async with self._slots.acquire(urgent=self._is_urgent("get_suffix", key)):
            return await self._inner.get_suffix(key, length)

    async def head(self, key: str) -> ObjectInfo:
        async with self._slots.acquire(urgent=self._is_urgent("head", key)):
            return await self._inner.head(key)

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        chunks = aiter(self._inner.list(prefix))
        while True:
            async with self._slots.acquire(urgent=self._is_urgent("list", prefix)):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk

    async def delete(self, keys: Sequence[str]) -> None:
        # Deletions are never urgent.
        async with self._slots.acquire(urgent=False):
            await self._inner.delete(keys)

    async def close(self) -> None:
        await self._inner.close()
