"""Reads of segments from a replica of the bucket that is closer.

Invariants: the main store serves all writes, listings and deletions, and alone decides what exists.
Only ranges of segments are read from the replica: every batch has a checksum, so the reader notices
if it got something else. Indexes, footers, WAL objects and all others come from the main store.

A replica that lags may have an older object under the same key, because segments can be replaced.
So an object is read from the replica only if it has the size of the main store's, which is compared
once in a while, and again after a write. A reader that finds damage asks for the object's `head`:
then the object is read from the main store for some time.

If the replica lacks an object or fails, the main store is read. A replica that fails is not used
for a pause, which doubles with each further failure; then one reader probes it. So an unavailable
replica slows down few readers.
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from kafscale.errors import ObjectNotFoundError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

logger = get_logger(__name__)

PAUSE_S_MIN: Final = 5.0
PAUSE_S_MAX: Final = 300.0

CHECK_S: Final = 60.0
"""How long an object counts as current after its size was compared."""
DOUBT_S: Final = 900.0
"""How long an object is read from the main store after doubts; buckets replicate within minutes."""
KEYS_MAX: Final = 10_000
"""Limit of remembered keys."""


class ReplicaReadingObjectStore:
    """A main store with a replica for reads."""

    __slots__ = (
        "_clock",
        "_current_until",
        "_doubted_until",
        "_is_available",
        "_is_segment",
        "_main",
        "_pause_s",
        "_paused_until",
        "_replica",
    )

    def __init__(
        self,
        main: ObjectStore,
        replica: ObjectStore,
        is_segment: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_segment` says which keys are segments; `clock` returns monotonic seconds."""
        self._is_segment = is_segment
        self._current_until: dict[str, float] = {}
        self._doubted_until: dict[str, float] = {}
        self._main = main
        self._replica = replica
        self._clock = clock
        self._is_available = True
        self._pause_s = PAUSE_S_MIN
        self._paused_until = 0.0

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        try:
            await self._main.put(key, parts, create=create)
        finally:
            self._current_until.pop(key, None)

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        await self._main.replace(key, parts, etag)

    async def get(self, key: str) -> memoryview:
        return await self._main.get(key)

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        if self._is_segment(key) and self._clock() >= self._doubted_until.get(key, 0):
            was_available = self._is_available
            if was_available or self._should_probe():
                data = await self._read_replica(key, start, stop, was_available=was_available)
                if data is not None:
                    return data
        return await self._main.get_range(key, start, stop)

    async def get_suffix(self, key: str, length: int) -> memoryview:
        return await self._main.get_suffix(key, length)

    async def head(self, key: str) -> ObjectInfo:
        self._remember(self._doubted_until, key, DOUBT_S)
        return await self._main.head(key)

    def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        return self._main.list(prefix)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._main.delete(keys)

    async def close(self) -> None:
        await self._replica.close()
        await self._main.close()

    async def _read_replica(
        self, key: str, start: int, stop: int, *, was_available: bool
    ) -> memoryview | None:
        """The range from the replica; None if the main store has to be read."""
        is_current = self._clock() < self._current_until.get(key, 0)
        main_bytes = 0 if is_current else (await self._main.head(key)).size_bytes
        try:
            if not is_current:
                is_current = (await self._replica.head(key)).size_bytes == main_bytes
                if is_current:
                    self._remember(self._current_until, key, CHECK_S)
            data = await self._replica.get_range(key, start, stop) if is_current else None
        except ObjectNotFoundError:
            data = None
        except OperatingError as error:
            self._on_failure(error, was_available=was_available)
            return None
        self._on_success()
        return data

    def _remember(self, until: dict[str, float], key: str, seconds: float) -> None:
        until.pop(key, None)
        if len(until) >= KEYS_MAX:
            del until[next(iter(until))]
        until[key] = self._clock() + seconds

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
