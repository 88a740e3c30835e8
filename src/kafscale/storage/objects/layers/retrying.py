"""Retries: an object store that hides transient errors.

Invariants: only `StoreUnavailableError` is retried, so that a request is sent `attempts_max`
times at most, after the pauses of `Backoff`, which can be cancelled.

Conditional PUTs are retried as well. If a retry finds that the key exists, or that its object has
changed, an earlier attempt may have done that: the object is read back, and if it is identical, the
PUT has succeeded. After the
last failed attempt, the outcome of a PUT is unknown, and the caller has to deal with it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random
from typing import TypeVar

from kafscale.aio.backoff import Backoff
from kafscale.errors import ObjectChangedError, ObjectExistsError, StoreUnavailableError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.comparison import is_equal
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

_Result = TypeVar("_Result")


class RetryingObjectStore:
    """Retries the requests to another store."""

    __slots__ = ("_attempts_max", "_inner", "_random", "_sleep")

    def __init__(
        self,
        inner: ObjectStore,
        *,
        attempts_max: int,
        random: Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        assert attempts_max > 0
        self._inner = inner
        self._attempts_max = attempts_max
        self._random = random
        self._sleep = sleep

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        await self._put(key, parts, lambda: self._inner.put(key, parts, create=create))

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        await self._put(key, parts, lambda: self._inner.replace(key, parts, etag))

    async def _put(
        self, key: str, parts: Sequence[Buffer], request: Callable[[], Awaitable[None]]
    ) -> None:
        backoff = Backoff(self._random)
        while True:
            try:
                return await request()
            except (ObjectExistsError, ObjectChangedError):
                if backoff.tries and await is_equal(await self.get(key), parts):
                    return None
                raise
            except StoreUnavailableError:
                if backoff.tries + 1 >= self._attempts_max:
                    raise
            await self._sleep(backoff.next_seconds())

    async def get(self, key: str) -> memoryview:
        return await self._retry(lambda: self._inner.get(key))

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return await self._retry(lambda: self._inner.get_range(key, start, stop))

    async def get_suffix(self, key: str, length: int) -> memoryview:
        return await self._retry(lambda: self._inner.get_suffix(key, length))

    async def head(self, key: str) -> ObjectInfo:
        return await self._retry(lambda: self._inner.head(key))

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """An interrupted listing starts again; objects that were already returned are skipped."""
        last = ""
        backoff = Backoff(self._random)
        while True:
            try:
                async for chunk in self._inner.list(prefix):
                    new = [info for info in chunk if info.key > last]
                    if new:
                        last = new[-1].key
                        backoff.reset()
                        yield new
            except StoreUnavailableError:
                if backoff.tries + 1 >= self._attempts_max:
                    raise
            else:
                return
            await self._sleep(backoff.next_seconds())

    async def delete(self, keys: Sequence[str]) -> None:
        await self._retry(lambda: self._inner.delete(keys))

    async def close(self) -> None:
        await self._inner.close()

    async def _retry(self, request: Callable[[], Awaitable[_Result]]) -> _Result:
        backoff = Backoff(self._random)
        while True:
            try:
                return await request()
            except StoreUnavailableError:
                if backoff.tries + 1 >= self._attempts_max:
                    raise
            await self._sleep(backoff.next_seconds())
