"""`AccessStore`: ACLs, SCRAM credentials and quotas of a cluster, and operations that change them.

Invariants:

1. Reads do not wait. One watch keeps the records current, so that a change by one broker is soon
   visible on all. An operation returns when its change is visible here.
2. Concurrent changes are not lost: every ACL has its own key, and partial updates compare the
   revision.
3. Changes of many ACLs take several commits. If one fails, earlier ones remain; all can be retried.
4. A record that cannot be decoded is logged and treated as absent. An ACL that cannot be decoded
   might deny something, so its key stays in `damaged` while it is invalid; authorizers must then
   deny everything that ACLs decide.

`kafscale.security` validates and evaluates the records.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final, TypeVar

from kafscale.errors import DamagedObjectError
from kafscale.metadata.access import keys
from kafscale.metadata.access.codec import (
    Limits,
    decode_acl,
    decode_credential,
    decode_quota,
    encode_acl,
    encode_credential,
    encode_quota,
)
from kafscale.metadata.access.model import Acl, QuotaEntity, ScramCredential, ScramMechanism
from kafscale.metadata.cluster.watch_cache import WatchCache
from kafscale.metadata.store.base import (
    COMMIT_BYTES_MAX,
    OPERATIONS_MAX,
    Delete,
    Entry,
    MetadataStore,
    Put,
    absent,
    time_limit,
    unchanged,
)
from kafscale.observability.logging import get_logger

TIMEOUT_MS: Final = 30_000
"""The time limit of a change."""

AclListener = Callable[[Acl | None, Acl | None], None]
"""Called with the removed and the added ACL; usually one of them is None."""
QuotaListener = Callable[[QuotaEntity], None]
"""Called with the entity whose quota was added, changed or removed."""

Change = TypeVar("Change", Put, Delete)
Value = TypeVar("Value")

logger = get_logger(__name__)


class AccessStore:
    """All ACLs, SCRAM credentials and quotas of a cluster."""

    def __init__(self, store: MetadataStore, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._store = store
        self._timeout_ms = timeout_ms
        self._acls: dict[str, Acl] = {}
        self._damaged: set[str] = set()
        self._credentials: dict[str, ScramCredential] = {}
        self._iterations: Counter[tuple[ScramMechanism, int]] = Counter()
        self._quotas: dict[str, tuple[QuotaEntity, Limits]] = {}
        self._limits: dict[QuotaEntity, Limits] = {}
        self._acl_listeners: list[AclListener] = []
        self._quota_listeners: list[QuotaListener] = []
        self._watch_cache = WatchCache(
            store,
            keys.ACCESS,
            self._changed,
            lambda key: key.startswith((keys.ACLS, keys.USERS, keys.QUOTAS)),
        )
        self.acls: Collection[Acl] = self._acls.values()
        """All ACLs; a live view, not a copy."""
        self.damaged: AbstractSet[str] = self._damaged
        """The keys of ACLs that cannot be decoded; while there are any, ACLs must not allow
        anything."""
        self.credentials: Collection[ScramCredential] = self._credentials.values()
        self.quotas: Mapping[QuotaEntity, Limits] = MappingProxyType(self._limits)

    @property
    def connected(self) -> bool:
        """True while the watch works; if false, the records may be outdated."""
        return self._watch_cache.connected

    async def start(self) -> None:
        """Read all records, then watch them until `close`."""
        await self._watch_cache.start()

    async def close(self) -> None:
        await self._watch_cache.close()

    def has(self, acl: Acl) -> bool:
        """True if an ACL exists; faster than a search in `acls`."""
        return keys.acl(acl) in self._acls

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._credentials.get(keys.credential(user, mechanism))

    def usual_iterations(self, mechanism: ScramMechanism) -> int | None:
        """The number of iterations that most users of a mechanism have; None without users."""
        users = {
            iterations: count
            for (kind, iterations), count in self._iterations.items()
            if kind is mechanism and count
        }
        return max(users, key=users.__getitem__, default=None)

    async def decoy_secret(self, candidate: bytes) -> bytes:
        """A secret of the cluster, which the first caller sets to `candidate`."""
        await self._store.commit([absent(keys.DECOY_SECRET)], [Put(keys.DECOY_SECRET, candidate)])
        entry = await self._store.get(keys.DECOY_SECRET)
        assert entry, "the secret is never deleted"
        return entry.value

    def subscribe_acls(self, listener: AclListener) -> None:
        """Call `listener` for every ACL that is added or removed; it must not block."""
        self._acl_listeners.append(listener)

    def subscribe_quotas(self, listener: QuotaListener) -> None:
        """Call `listener` for every quota that changes; it must not block."""
        self._quota_listeners.append(listener)

    async def add_acls(self, acls: Iterable[Acl]) -> None:
        """Add ACLs; existing ones are ignored."""
        puts = [Put(keys.acl(acl), encode_acl(acl)) for acl in dict.fromkeys(acls)]
        async with time_limit("the ACLs were not all added", self._timeout_ms):
            for chunk in _chunks(puts):
                await self._put(chunk)

    async def remove_acls(self, acls: Iterable[Acl]) -> None:
        """Remove ACLs; missing ones are ignored."""
        deletes = [Delete(keys.acl(acl)) for acl in dict.fromkeys(acls)]
        async with time_limit("the ACLs were not all removed", self._timeout_ms):
            for chunk in _chunks(deletes):
                await self._delete(chunk)

    async def set_credential(self, credential: ScramCredential) -> None:
        """Set the credential of a user and mechanism."""
        key = keys.credential(credential.user, credential.mechanism)
        async with time_limit(
            f"the credential of {credential.user!r} was not set", self._timeout_ms
        ):
            await self._put([Put(key, encode_credential(credential))])

    async def remove_credential(self, user: str, mechanism: ScramMechanism) -> bool:
        """Remove a credential; return whether it existed."""
        key = keys.credential(user, mechanism)
        async with time_limit(f"the credential of {user!r} was not removed", self._timeout_ms):
            while (entry := await self._store.get(key)) is not None:
                done = await self._store.commit([unchanged(entry)], [Delete(key)])
                if done.succeeded:
                    await self._watch_cache.wait_for_revision(done.revision)
                    return True
        return False

    async def alter_quota(self, entity: QuotaEntity, changes: Mapping[str, float | None]) -> None:
        """Set limits of an entity, and remove those that are None; others are unchanged."""
        key = keys.quota(entity)
        async with time_limit("the quota was not changed", self._timeout_ms):
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
        # A delete of missing keys has no revision to wait for.
        entries = self._watch_cache.entries
        while any(
            (entry := entries.get(delete.key)) and entry.mod_revision <= done.revision
            for delete in deletes
        ):
            await self._watch_cache.wait_for_change()

    # --- watch callbacks -----------------------------------------------------------------------

    def _changed(self, key: str, entry: Entry | None) -> None:
        if key.startswith(keys.ACLS):
            self._acl_changed(key, entry)
        elif key.startswith(keys.USERS):
            self._credential_changed(key, _decode_or_none(entry, decode_credential))
        else:
            self._quota_changed(key, entry)

    def _credential_changed(self, key: str, after: ScramCredential | None) -> None:
        before = _replace(self._credentials, key, after)
        for credential, change in ((before, -1), (after, 1)):
            if credential is not None:
                self._iterations[credential.mechanism, credential.iterations] += change

    def _acl_changed(self, key: str, entry: Entry | None) -> None:
        after = _decode_or_none(entry, decode_acl)
        if entry is not None and after is None:
            self._damaged.add(key)
        else:
            self._damaged.discard(key)
        before = _replace(self._acls, key, after)
        if before == after:
            return
        for listener in self._acl_listeners:
            try:
                listener(before, after)
            except Exception:
                # An authorizer may have missed this ACL, which is as bad as one that cannot be
                # decoded.
                self._damaged.add(key)
                logger.exception("ACL listener failed", before=before, after=after)

    def _quota_changed(self, key: str, entry: Entry | None) -> None:
        after = _decode_or_none(entry, decode_quota)
        before = _replace(self._quotas, key, after)
        if before == after:
            return
        if after is not None:
            entity, limits = after
            self._limits[entity] = limits
        else:
            assert before is not None
            entity = before[0]
            del self._limits[entity]
        for listener in self._quota_listeners:
            try:
                listener(entity)
            except Exception:
                logger.exception("quota listener failed", entity=entity)


def _replace(values: dict[str, Value], key: str, after: Value | None) -> Value | None:
    """Set or remove the value of a key; return the previous value."""
    before = values.get(key)
    if after is not None:
        values[key] = after
    elif before is not None:
        del values[key]
    return before


def _decode_or_none(entry: Entry | None, decode: Callable[[Entry], Value]) -> Value | None:
    if entry is None:
        return None
    try:
        return decode(entry)
    except DamagedObjectError as error:
        logger.error("access record damaged", key=entry.key, reason=error.reason)
        return None


def _limits(entry: Entry | None) -> Limits:
    """Decode the limits of a quota; an invalid record has none, as in the cache."""
    if entry is None:
        return {}
    try:
        return decode_quota(entry)[1]
    except DamagedObjectError:
        return {}


def _chunks(operations: Sequence[Change]) -> Iterator[list[Change]]:
    """Split operations into commits that the store accepts."""
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
