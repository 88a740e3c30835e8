"""Trying again: an object store that gets over passing faults.

The laws: only `StoreUnavailableError` is tried again, at most `retries_max` times, after 100 ms
that double up to 10 s, with up to 30 % added by chance so that brokers do not knock in step.
Whoever waits may be cancelled at any time.

A create-only PUT is tried again as well. If it then finds its key taken, an earlier attempt may
have been the one to take it: the object is read back, and if it is byte for byte what was to be
written, the PUT has succeeded. A PUT that fails to the end remains in doubt, and is the caller's.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random
from typing import Final, TypeVar

from kafscale.errors import ObjectExistsError, StoreUnavailableError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

_BACKOFF_S_MIN: Final = 0.1
_BACKOFF_S_MAX: Final = 10.0
_JITTER_MAX: Final = 0.3

_Result = TypeVar("_Result")


class RetryingObjectStore:
    """A store in front of another, more patient than it."""

    __slots__ = ("_inner", "_random", "_retries_max", "_sleep")

    def __init__(
        self,
        inner: ObjectStore,
        *,
        retries_max: int,
        random: Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        assert retries_max >= 0
        self._inner = inner
        self._retries_max = retries_max
        self._random = random
        self._sleep = sleep

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        attempt = 0
        while True:
            try:
                return await self._inner.put(key, parts, create=create)
            except ObjectExistsError:
                if attempt and _is_made_of(await self.get(key), parts):
                    return None
                raise
            except StoreUnavailableError:
                if attempt == self._retries_max:
                    raise
            await self._back_off(attempt)
            attempt += 1

    async def get(self, key: str) -> memoryview:
        return await self._insist(lambda: self._inner.get(key))

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return await self._insist(lambda: self._inner.get_range(key, start, stop))

    async def get_suffix(self, key: str, length: int) -> memoryview:
        return await self._insist(lambda: self._inner.get_suffix(key, length))

    async def head(self, key: str) -> ObjectInfo:
        return await self._insist(lambda: self._inner.head(key))

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """A listing that breaks off is begun again, and what was already given is left out."""
        last = ""
        attempt = 0
        while True:
            try:
                async for chunk in self._inner.list(prefix):
                    news = [info for info in chunk if info.key > last]
                    if news:
                        last = news[-1].key
                        attempt = 0
                        yield news
            except StoreUnavailableError:
                if attempt == self._retries_max:
                    raise
            else:
                return
            await self._back_off(attempt)
            attempt += 1

    async def delete(self, keys: Sequence[str]) -> None:
        await self._insist(lambda: self._inner.delete(keys))

    async def close(self) -> None:
        await self._inner.close()

    async def _insist(self, request: Callable[[], Awaitable[_Result]]) -> _Result:
        attempt = 0
        while True:
            try:
                return await request()
            except StoreUnavailableError:
                if attempt == self._retries_max:
                    raise
            await self._back_off(attempt)
            attempt += 1

    async def _back_off(self, attempt: int) -> None:
        pause_s = min(_BACKOFF_S_MIN * 2**attempt, _BACKOFF_S_MAX)
        await self._sleep(pause_s * (1 + self._random.uniform(0, _JITTER_MAX)))


def _is_made_of(stored: memoryview, parts: Sequence[Buffer]) -> bool:
    position = 0
    for part in parts:
        if stored[position : position + len(part)] != part:
            return False
        position += len(part)
    return position == len(stored)
