"""Reads from a replica of the bucket that is closer.

Invariants: the main store serves all writes, listings and deletions, and alone decides what exists.
Objects are read from the replica, or from the main store if the replica lacks them or fails. A
replica that fails is not used for a pause, which doubles with each further failure; then one reader
probes it. So an unavailable replica slows down few readers.

A replica that lags may return an object that has been replaced or deleted in the main store. Do not
read keys through this store whose content can change.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeVar

from kafscale.errors import ObjectNotFoundError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

logger = get_logger(__name__)

PAUSE_S_MIN: Final = 5.0
PAUSE_S_MAX: Final = 300.0

_Result = TypeVar("_Result")
_Read = Callable[[ObjectStore], Awaitable[_Result]]


class ReplicaReadingObjectStore:
    """A main store with a replica for reads."""

    __slots__ = ("_clock", "_is_available", "_main", "_pause_s", "_paused_until", "_replica")

    def __init__(
        self, main: ObjectStore, replica: ObjectStore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` returns monotonic seconds."""
        self._main = main
        self._replica = replica
        self._clock = clock
        self._is_available = True
        self._pause_s = PAUSE_S_MIN
        self._paused_until = 0.0

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        await self._main.put(key, parts, create=create)

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        await self._main.replace(key, parts, etag)

    async def get(self, key: str) -> memoryview:
        return await self._read(lambda store: store.get(key))

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return await self._read(lambda store: store.get_range(key, start, stop))

    async def get_suffix(self, key: str, length: int) -> memoryview:
        return await self._read(lambda store: store.get_suffix(key, length))

    async def head(self, key: str) -> ObjectInfo:
        return await self._main.head(key)

    def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        return self._main.list(prefix)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._main.delete(keys)

    async def close(self) -> None:
        await self._replica.close()
        await self._main.close()

    async def _read(self, read: _Read[_Result]) -> _Result:
        was_available = self._is_available
        if was_available or self._should_probe():
            try:
                result = await read(self._replica)
            except ObjectNotFoundError:
                self._on_success()
            except OperatingError as error:
                self._on_failure(error, was_available=was_available)
            else:
                self._on_success()
                return result
        return await read(self._main)

    def _should_probe(self) -> bool:
        """Whether to try a failed replica again; True for one reader per pause."""
        now = self._clock()
        if now < self._paused_until:
            return False
        self._paused_until = now + self._pause_s
        return True

    def _on_success(self) -> None:
        if not self._is_available:
            logger.info("read bucket available again")
        self._is_available = True
        self._pause_s = PAUSE_S_MIN

    def _on_failure(self, error: OperatingError, *, was_available: bool) -> None:
        if not was_available:
            self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)
        elif self._is_available:
            logger.warning("read bucket failed, reading from main bucket", error=str(error))
        else:
            return  # A concurrent read has already logged it.
        self._is_available = False
        self._paused_until = self._clock() + self._pause_s
