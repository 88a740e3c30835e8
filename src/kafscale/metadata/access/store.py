"""Who may do what, who may come in, and how much they may use: what is kept, and ways to change it.

The laws:

1. Brokers read without waiting; what they see is kept current by `access_view`, so that what one
   broker changes is soon seen by all. A method that changes something returns when the change can
   be seen here.
2. Two who change something at the same time never lose one another's change: a rule is a key of
   its own, and what is changed in part is compared before it is written.
3. Many rules take several commits. Where one of them fails, the earlier ones have been made: all of
   them can be tried again.

What the rules mean, and whether they make sense, is left to others.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from kafscale.errors import DamagedObjectError, StoreUnavailableError
from kafscale.metadata.access import keys
from kafscale.metadata.access.cache import AclCache, AclListener, QuotaListener
from kafscale.metadata.access.codec import (
    Limits,
    decode_quota,
    encode_acl,
    encode_credential,
    encode_quota,
)
from kafscale.metadata.access.model import Acl, QuotaEntity, ScramCredential, ScramMechanism
from kafscale.metadata.store.base import (
    COMMIT_BYTES_MAX,
    OPERATIONS_MAX,
    Delete,
    Entry,
    MetadataStore,
    Put,
    absent,
    unchanged,
)

TIMEOUT_MS: Final = 30_000
"""How long a change may take."""

Change = TypeVar("Change", Put, Delete)


class AclStore:
    """All rules, SCRAM credentials and quotas of a cluster."""

    def __init__(self, store: MetadataStore, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._store = store
        self._timeout_ms = timeout_ms
        self._cache = AclCache(store)
        self._watch_cache = self._cache.watch_cache
        self.acls: Collection[Acl] = self._cache.acls
        """All rules, as they are now: a view, not a copy."""
        self.damaged: AbstractSet[str] = self._cache.damaged
        """The keys of rules that cannot be read; while there are any, nobody may be allowed
        anything by rules."""
        self.credentials: Collection[ScramCredential] = self._cache.credentials
        self.quotas: Mapping[QuotaEntity, Limits] = self._cache.quotas

    @property
    def connected(self) -> bool:
        """Whether the store's changes arrive here; if not, what is seen may be out of date."""
        return self._watch_cache.connected

    async def start(self) -> None:
        """Read everything, then follow the store in the background until `close`."""
        await self._watch_cache.start()

    async def close(self) -> None:
        await self._watch_cache.close()

    def has(self, acl: Acl) -> bool:
        """Whether a rule is there; faster than looking through all of them."""
        return self._cache.has(acl)

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._cache.credential(user, mechanism)

    def subscribe_acls(self, listener: AclListener) -> None:
        """Tell `listener` of every rule that comes or goes from now on; it must not wait."""
        self._cache.subscribe_acls(listener)

    def subscribe_quotas(self, listener: QuotaListener) -> None:
        """Tell `listener` of every quota that changes from now on; it must not wait."""
        self._cache.subscribe_quotas(listener)

    async def add_acls(self, acls: Iterable[Acl]) -> None:
        """Add rules; those that are there already are no error."""
        puts = [Put(keys.acl(acl), encode_acl(acl)) for acl in dict.fromkeys(acls)]
        async with self._limit("the rules are not all added yet"):
            for chunk in _chunks(puts):
                await self._put(chunk)

    async def remove_acls(self, acls: Iterable[Acl]) -> None:
        """Remove rules; those that are not there are no error."""
        deletes = [Delete(keys.acl(acl)) for acl in dict.fromkeys(acls)]
        async with self._limit("the rules are not all removed yet"):
            for chunk in _chunks(deletes):
                await self._delete(chunk)

    async def set_credential(self, credential: ScramCredential) -> None:
        """Keep a credential, instead of an older one of the same user and mechanism."""
        key = keys.credential(credential.user, credential.mechanism)
        async with self._limit(f"the credential of {credential.user!r} is not set yet"):
            await self._put([Put(key, encode_credential(credential))])

    async def remove_credential(self, user: str, mechanism: ScramMechanism) -> bool:
        """Forget a credential; whether there was one."""
        key = keys.credential(user, mechanism)
        async with self._limit(f"the credential of {user!r} is not removed yet"):
            while (entry := await self._store.get(key)) is not None:
                done = await self._store.commit([unchanged(entry)], [Delete(key)])
                if done.succeeded:
                    await self._watch_cache.wait_for_revision(done.revision)
                    return True
        return False

    async def alter_quota(self, entity: QuotaEntity, changes: Mapping[str, float | None]) -> None:
        """Set limits of somebody, and remove those that are None; others stay as they are."""
        key = keys.quota(entity)
        async with self._limit("the quota is not changed yet"):
            while True:
                entry = await self._store.get(key)
                before = _limits(entry)
                merged = {**before, **changes}
                after = {name: limit for name, limit in merged.items() if limit is not None}
                if after == before:
                    return
                operation = Put(key, encode_quota(entity, after)) if after else Delete(key)
                compare = unchanged(entry) if entry else absent(key)
                done = await self._store.commit([compare], [operation])
                if done.succeeded:
                    await self._watch_cache.wait_for_revision(done.revision)
                    return

    async def _put(self, puts: Sequence[Put]) -> None:
        done = await self._store.commit([], puts)
        await self._watch_cache.wait_for_revision(done.revision)

    async def _delete(self, deletes: Sequence[Delete]) -> None:
        done = await self._store.commit([], deletes)
        # Where nothing was there to be deleted, there is no such revision to be waited for.
        entries = self._watch_cache.entries
        while any(
            (entry := entries.get(delete.key)) and entry.mod_revision <= done.revision
            for delete in deletes
        ):
            await self._watch_cache.wait_for_change()

    @asynccontextmanager
    async def _limit(self, late: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                yield
        except TimeoutError as error:
            raise StoreUnavailableError(f"{late}, after {self._timeout_ms} ms") from error


def _limits(entry: Entry | None) -> Limits:
    """What a quota says now; one that cannot be read says nothing, here as in the view."""
    if entry is None:
        return {}
    try:
        return decode_quota(entry)[1]
    except DamagedObjectError:
        return {}


def _chunks(operations: Sequence[Change]) -> Iterator[list[Change]]:
    """The operations, in as many commits as the store wants for them."""
    chunk: list[Change] = []
    chunk_bytes = 0
    for operation in operations:
        size_bytes = len(operation.key.encode()) + (
            len(operation.value) if isinstance(operation, Put) else 0
        )
        if len(chunk) == OPERATIONS_MAX or chunk_bytes + size_bytes > COMMIT_BYTES_MAX:
            yield chunk
            chunk, chunk_bytes = [], 0
        chunk.append(operation)
        chunk_bytes += size_bytes
    if chunk:
        yield chunk
