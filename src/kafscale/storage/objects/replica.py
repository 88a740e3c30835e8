"""Reading from a nearer copy of the bucket.

The laws: everything is written to, listed from and deleted in the main store, which alone says what
exists; bytes are read from the copy, and from the main store whenever the copy has not got them yet
or does not answer. An object that was replaced or deleted may be read from the copy as it was, as
long as the copy is behind.
"""

from collections.abc import AsyncIterator, Sequence

from kafscale.errors import ObjectNotFoundError, StoreUnavailableError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.base import ObjectInfo, ObjectStore


class ReplicaReadingObjectStore:
    """A main store with a copy for readers."""

    __slots__ = ("_main", "_replica")

    def __init__(self, main: ObjectStore, replica: ObjectStore) -> None:
        self._main = main
        self._replica = replica

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        await self._main.put(key, parts, create=create)

    async def get(self, key: str) -> memoryview:
        try:
            return await self._replica.get(key)
        except (ObjectNotFoundError, StoreUnavailableError):
            return await self._main.get(key)

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        try:
            return await self._replica.get_range(key, start, stop)
        except (ObjectNotFoundError, StoreUnavailableError):
            return await self._main.get_range(key, start, stop)

    async def get_suffix(self, key: str, length: int) -> memoryview:
        try:
            return await self._replica.get_suffix(key, length)
        except (ObjectNotFoundError, StoreUnavailableError):
            return await self._main.get_suffix(key, length)

    async def head(self, key: str) -> ObjectInfo:
        return await self._main.head(key)

    def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        return self._main.list(prefix)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._main.delete(keys)

    async def close(self) -> None:
        await self._replica.close()
        await self._main.close()
