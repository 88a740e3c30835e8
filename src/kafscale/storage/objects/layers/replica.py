"""Reading from a nearer copy of the bucket.

The laws: everything is written to, listed from and deleted in the main store, which alone says what
exists; bytes are read from the copy, and from the main store whenever the copy has not got them yet
or does not serve them. A copy that fails is left alone for a while, which doubles each time it has
failed again, and then tried by one reader: a copy that is away costs few readers anything.

An object that was replaced or deleted may be read from the copy as it was, as long as the copy is
behind. So a key that can come to hold something else is not one to read through this store.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeVar

from kafscale.errors import ObjectNotFoundError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore

logger = get_logger(__name__)

REST_S_MIN: Final = 5.0
REST_S_MAX: Final = 300.0

_Result = TypeVar("_Result")
_Read = Callable[[ObjectStore], Awaitable[_Result]]


class ReplicaReadingObjectStore:
    """A main store with a copy for readers."""

    __slots__ = ("_clock", "_is_well", "_main", "_replica", "_rest_s", "_rests_until")

    def __init__(
        self, main: ObjectStore, replica: ObjectStore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` tells seconds and never goes back."""
        self._main = main
        self._replica = replica
        self._clock = clock
        self._is_well = True
        self._rest_s = REST_S_MIN
        self._rests_until = 0.0

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        await self._main.put(key, parts, create=create)

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
        was_well = self._is_well
        if was_well or self._is_to_be_tried():
            try:
                found = await read(self._replica)
            except ObjectNotFoundError:
                self._on_answer()
            except OperatingError as error:
                self._on_failure(error, was_well=was_well)
            else:
                self._on_answer()
                return found
        return await read(self._main)

    def _is_to_be_tried(self) -> bool:
        """Whether it is time to ask a copy that has failed, which one reader alone does."""
        now = self._clock()
        if now < self._rests_until:
            return False
        self._rests_until = now + self._rest_s
        return True

    def _on_answer(self) -> None:
        if not self._is_well:
            logger.info("read bucket answers again")
        self._is_well = True
        self._rest_s = REST_S_MIN

    def _on_failure(self, error: OperatingError, *, was_well: bool) -> None:
        if not was_well:
            self._rest_s = min(2 * self._rest_s, REST_S_MAX)
        elif self._is_well:
            logger.warning("read bucket fails, the main one is read instead", error=str(error))
        else:
            return  # Of many who asked at the same time, one has told already.
        self._is_well = False
        self._rests_until = self._clock() + self._rest_s
