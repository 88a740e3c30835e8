"""Metrics and traces: an object store that reports every request to an observer.

Invariants: the observer is called exactly twice per request, at its start and at its end, whatever
the result. Time that the caller spends between the pages of a listing is not counted. Results such
as "not found" or "exists" are responses; only the statuses in `FAILURES` affect the store's health.
The observer must be fast and must not raise.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar

from kafscale.errors import (
    ObjectChangedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreUnavailableError,
)
from kafscale.observability import tracing
from kafscale.observability.tracing import SpanKind
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

BEGUN: Final = "begun"
"""The status of a request that has started; all others are results."""
SUCCESS: Final = "success"
NOT_FOUND: Final = "not_found"
EXISTS: Final = "exists"
CHANGED: Final = "changed"
CANCELLED: Final = "cancelled"
UNAVAILABLE: Final = "unavailable"
ERROR: Final = "error"

FAILURES: Final = frozenset({UNAVAILABLE, ERROR})
"""The statuses that count as failures of the store."""

REPLICA: Final = "replica_"
"""Prefix of the operation names of a replica; see `replica_observer`."""

_STATUSES: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ObjectNotFoundError, NOT_FOUND),
    (ObjectExistsError, EXISTS),
    (ObjectChangedError, CHANGED),
    (StoreUnavailableError, UNAVAILABLE),
    (asyncio.CancelledError, CANCELLED),
    (GeneratorExit, CANCELLED),
)

_Result = TypeVar("_Result")


class OperationObserver(Protocol):
    """Called with the operation, its status, its duration and the number of bytes."""

    def __call__(self, operation: str, status: str, seconds: float, size_bytes: int, /) -> None: ...


def replica_observer(observer: OperationObserver) -> OperationObserver:
    """Report the operations of a replica under separate names.

    They do not affect the health of the store itself.
    """

    def on_operation(operation: str, status: str, seconds: float, size_bytes: int) -> None:
        observer(REPLICA + operation, status, seconds, size_bytes)

    return on_operation


class ObservedObjectStore:
    """Reports the requests to another store."""

    __slots__ = ("_clock", "_inner", "_on_operation")

    def __init__(
        self,
        inner: ObjectStore,
        on_operation: OperationObserver,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`clock` returns monotonic seconds."""
        self._inner = inner
        self._on_operation = on_operation
        self._clock = clock

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        size_bytes = sum(map(len, parts))
        await self._observe("put", key, self._inner.put(key, parts, create=create), size_bytes)

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        size_bytes = sum(map(len, parts))
        await self._observe("put", key, self._inner.replace(key, parts, etag), size_bytes)

    async def get(self, key: str) -> memoryview:
        return await self._observe("get", key, self._inner.get(key))

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return await self._observe("get_range", key, self._inner.get_range(key, start, stop))

    async def get_suffix(self, key: str, length: int) -> memoryview:
        return await self._observe("get_suffix", key, self._inner.get_suffix(key, length))

    async def head(self, key: str) -> ObjectInfo:
        return await self._observe("head", key, self._inner.head(key))

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        chunks = aiter(self._inner.list(prefix))
        while True:
            chunk = await self._observe("list", prefix, anext(chunks, None))
            if chunk is None:
                return
            yield chunk

    async def delete(self, keys: Sequence[str]) -> None:
        await self._observe("delete", keys[0] if keys else "", self._inner.delete(keys))

    async def close(self) -> None:
        await self._inner.close()

    async def _observe(
        self, operation: str, key: str, request: Awaitable[_Result], size_bytes: int = 0
    ) -> _Result:
        self._on_operation(operation, BEGUN, 0.0, 0)
        started = self._clock()
        status = SUCCESS
        try:
            if tracing.is_enabled():
                result = await _traced(operation, key, request, size_bytes)
            else:
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


async def _traced(
    operation: str, key: str, request: Awaitable[_Result], size_bytes: int
) -> _Result:
    """Await a request in a span with its key; the span never contains data."""
    with tracing.span(
        f"objects {operation}",
        SpanKind.CLIENT,
        {"kafscale.object.key": key},
        expected=(ObjectNotFoundError, ObjectExistsError, ObjectChangedError),
    ) as span:
        result = await request
        if span is not None:
            moved_bytes = len(result) if isinstance(result, memoryview) else size_bytes
            span.set("kafscale.object.bytes", moved_bytes)
        return result
