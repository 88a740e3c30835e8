"""Lease proof: an object store that changes objects only while the broker's lease is valid.

A broker that is cut off from the metadata store may have been replaced. Invariant: no PUT and no
DELETE of this store begins after the lease has ended by the broker's own clock; it raises
`StoreUnavailableError`, so that the caller tries again later. A request that began before may take
effect at any later time, so callers use keys and conditions that make late effects harmless.

WAL objects are written without this layer: fences protect them.
"""

from collections.abc import AsyncIterator, Callable, Sequence

from kafscale.errors import StoreUnavailableError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.store import ObjectInfo, ObjectStore


class LeasedObjectStore:
    """Checks the lease before every change of another store."""

    __slots__ = ("_inner", "_is_lease_valid")

    def __init__(self, inner: ObjectStore, is_lease_valid: Callable[[], bool]) -> None:
        self._inner = inner
        self._is_lease_valid = is_lease_valid

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        self._check_lease("put", key)
        await self._inner.put(key, parts, create=create)

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        self._check_lease("put", key)
        await self._inner.replace(key, parts, etag)

    async def get(self, key: str) -> memoryview:
        return await self._inner.get(key)

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        return await self._inner.get_range(key, start, stop)

    async def get_suffix(self, key: str, length: int) -> memoryview:
        return await self._inner.get_suffix(key, length)

    async def head(self, key: str) -> ObjectInfo:
        return await self._inner.head(key)

    def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        return self._inner.list(prefix)

    async def delete(self, keys: Sequence[str]) -> None:
        if keys:
            self._check_lease("delete", keys[0])
        await self._inner.delete(keys)

    async def close(self) -> None:
        await self._inner.close()

    def _check_lease(self, operation: str, key: str) -> None:
        if not self._is_lease_valid():
            raise StoreUnavailableError(
                f"{operation} {key}: the metadata store has not confirmed this broker's lease"
            )
