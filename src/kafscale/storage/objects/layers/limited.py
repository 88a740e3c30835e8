"""A bound on how many requests one broker has under way at a bucket, with a share for the urgent.

The laws: there are never more than `requests_max`; ordinary requests leave `reserved_count` of them
free, so that urgent ones (the write-ahead log's, which producers wait for) do not queue behind
consumers who catch up; within each kind, whoever came first goes first. A listing is one request a
page. Waiting here is not the store's slowness, so whoever measures that stands below.

Which requests are urgent is left to whoever makes the store.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

_Waiters = deque[asyncio.Future[None]]


class Slots:
    """So many at a time, and the urgent first."""

    __slots__ = ("_free", "_ordinary", "_reserved", "_urgent")

    def __init__(self, count: int, reserved_count: int) -> None:
        assert 0 <= reserved_count < count, "ordinary requests would wait for ever"
        self._free = count
        self._reserved = reserved_count
        self._urgent: _Waiters = deque()
        self._ordinary: _Waiters = deque()

    @asynccontextmanager
    async def one(self, *, urgent: bool) -> AsyncIterator[None]:
        await self._take(urgent=urgent)
        try:
            yield
        finally:
            self._free += 1
            self._hand_out()

    async def _take(self, *, urgent: bool) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._urgent if urgent else self._ordinary).append(waiter)
        self._hand_out()
        if waiter.done():
            return
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                # The slot and the end came at the same time.
                self._free += 1
                self._hand_out()
            raise

    def _hand_out(self) -> None:
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
    """A store in front of another, which lets only so many requests through at once."""

    __slots__ = ("_inner", "_is_urgent", "_slots")

    def __init__(
        self,
        inner: ObjectStore,
        *,
        requests_max: int,
        reserved_count: int = 0,
        is_urgent: Callable[[str, str], bool] = lambda _operation, _key: False,
    ) -> None:
        """`is_urgent` is asked with the operation and its key."""
        self._inner = inner
        self._slots = Slots(requests_max, reserved_count)
        self._is_urgent = is_urgent

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        async with self._slots.one(urgent=self._is_urgent("put", key)):
            await self._inner.put(key, parts, create=create)

    async def get(self, key: str) -> memoryview:
        async with self._slots.one(urgent=self._is_urgent("get", key)):
            return await self._inner.get(key)

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        async with self._slots.one(urgent=self._is_urgent("get_range", key)):
            return await self._inner.get_range(key, start, stop)

    async def get_suffix(self, key: str, length: int) -> memoryview:
        async with self._slots.one(urgent=self._is_urgent("get_suffix", key)):
            return await self._inner.get_suffix(key, length)

    async def head(self, key: str) -> ObjectInfo:
        async with self._slots.one(urgent=self._is_urgent("head", key)):
            return await self._inner.head(key)

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        chunks = aiter(self._inner.list(prefix))
        while True:
            async with self._slots.one(urgent=self._is_urgent("list", prefix)):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk

    async def delete(self, keys: Sequence[str]) -> None:
        # Nobody waits for a deletion.
        async with self._slots.one(urgent=False):
            await self._inner.delete(keys)

    async def close(self) -> None:
        await self._inner.close()
