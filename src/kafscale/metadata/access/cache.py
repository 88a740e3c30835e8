"""`AclCache`: ACLs, SCRAM credentials and quotas, kept current by one watch.

Listeners are called after every change. A record that cannot be decoded is logged and treated as
absent. An ACL that cannot be decoded might deny something, so its key stays in `damaged` while it
is invalid; authorizers must then deny everything that ACLs decide. `AclStore` changes the records.
"""

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import TypeVar

from kafscale.errors import DamagedObjectError
from kafscale.metadata.access import keys
from kafscale.metadata.access.codec import Limits, decode_acl, decode_credential, decode_quota
from kafscale.metadata.access.model import Acl, QuotaEntity, ScramCredential, ScramMechanism
from kafscale.metadata.cluster.watch_cache import WatchCache
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.observability.logging import get_logger

AclListener = Callable[[Acl | None, Acl | None], None]
"""Called with the removed and the added ACL; usually one of them is None."""
QuotaListener = Callable[[QuotaEntity], None]
"""Called with the entity whose quota was added, changed or removed."""

Value = TypeVar("Value")

_PREFIXES = (keys.ACLS, keys.USERS, keys.QUOTAS)

_log = get_logger(__name__)


class AclCache:
    """All records under the access prefix, decoded."""

    def __init__(self, store: MetadataStore) -> None:
        self._acls: dict[str, Acl] = {}
        self._damaged: set[str] = set()
        self._credentials: dict[str, ScramCredential] = {}
        self._quotas: dict[str, tuple[QuotaEntity, Limits]] = {}
        self._limits: dict[QuotaEntity, Limits] = {}
        self._acl_listeners: list[AclListener] = []
        self._quota_listeners: list[QuotaListener] = []
        self.watch_cache = WatchCache(store, keys.ACCESS, self._changed, _is_cached)
        self.acls: Collection[Acl] = self._acls.values()
        self.damaged: AbstractSet[str] = self._damaged
        """The keys of ACLs that cannot be decoded."""
        self.credentials: Collection[ScramCredential] = self._credentials.values()
        self.quotas: Mapping[QuotaEntity, Limits] = MappingProxyType(self._limits)

    def has(self, acl: Acl) -> bool:
        return keys.acl(acl) in self._acls

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._credentials.get(keys.credential(user, mechanism))

    def subscribe_acls(self, listener: AclListener) -> None:
        self._acl_listeners.append(listener)

    def subscribe_quotas(self, listener: QuotaListener) -> None:
        self._quota_listeners.append(listener)

    def _changed(self, key: str, entry: Entry | None) -> None:
        if key.startswith(keys.ACLS):
            self._acl_changed(key, entry)
        elif key.startswith(keys.USERS):
            _replace(self._credentials, key, _decode_or_none(entry, decode_credential))
        else:
            self._quota_changed(key, entry)

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
            except Exception:  # noqa: BLE001 - logged.
                # An authorizer may have missed this ACL, which is as bad as one that cannot be
                # decoded.
                self._damaged.add(key)
                _log.exception("ACL listener failed", before=before, after=after)

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
            except Exception:  # noqa: BLE001 - logged.
                _log.exception("quota listener failed", entity=entity)


def _is_cached(key: str) -> bool:
    return key.startswith(_PREFIXES)


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
        _log.error("access record damaged", key=entry.key, reason=error.reason)
        return None
