"""Counting and timing: an object store that tells somebody about every request.

The laws: every request is told exactly once, when it has ended and however it ended; time that the
caller spends between the chunks of a listing is not the store's. An answer such as "not found" or
"exists" is an answer: only what `FAILURES` names speaks against the store's health. What is done
with it (metrics, the health window) is left to the observer, which must be quick and never raise.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar

from kafscale.errors import ObjectExistsError, ObjectNotFoundError, StoreUnavailableError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.base import ObjectInfo, ObjectStore

SUCCESS: Final = "success"
NOT_FOUND: Final = "not_found"
EXISTS: Final = "exists"
CANCELLED: Final = "cancelled"
UNAVAILABLE: Final = "unavailable"
ERROR: Final = "error"

FAILURES: Final = frozenset({UNAVAILABLE, ERROR})
"""The statuses that count against the store."""

_STATUSES: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ObjectNotFoundError, NOT_FOUND),
    (ObjectExistsError, EXISTS),
    (StoreUnavailableError, UNAVAILABLE),
    (asyncio.CancelledError, CANCELLED),
    (GeneratorExit, CANCELLED),
)

_Result = TypeVar("_Result")


class OperationObserver(Protocol):
    """Who is told: which operation ended, how, after how many seconds, and how much it moved."""

    def __call__(self, operation: str, status: str, seconds: float, size_bytes: int, /) -> None: ...


class ObservedObjectStore:
    """A store in front of another, silent itself."""

    __slots__ = ("_clock", "_inner", "_on_operation")

    def __init__(
        self,
        inner: ObjectStore,
        on_operation: OperationObserver,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`clock` tells seconds and never goes back."""
        self._inner = inner
        self._on_operation = on_operation
        self._clock = clock

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        size_bytes = sum(map(len, parts))
        await self._observe("put", self._inner.put(key, parts, create=create), size_bytes)

    async def get(self, key: str) -> memoryview:
        return await self._observe("get", self._inner.get(key))

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return await self._observe("get_range", self._inner.get_range(key, start, stop))

    async def get_suffix(self, key: str, length: int) -> memoryview:
        return await self._observe("get_suffix", self._inner.get_suffix(key, length))

    async def head(self, key: str) -> ObjectInfo:
        return await self._observe("head", self._inner.head(key))

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        chunks = aiter(self._inner.list(prefix))
        while True:
            chunk = await self._observe("list", anext(chunks, None))
            if chunk is None:
                return
            yield chunk

    async def delete(self, keys: Sequence[str]) -> None:
        await self._observe("delete", self._inner.delete(keys))

    async def close(self) -> None:
        await self._inner.close()

    async def _observe(
        self, operation: str, request: Awaitable[_Result], size_bytes: int = 0
    ) -> _Result:
        started = self._clock()
        status = SUCCESS
        try:
            result = await request
        except BaseException as error:
            status = next((name for kind, name in _STATUSES if isinstance(error, kind)), ERROR)
            raise
        else:
            if isinstance(result, memoryview):
                size_bytes = len(result)
            return result
        finally:
            self._on_operation(operation, status, self._clock() - started, size_bytes)
