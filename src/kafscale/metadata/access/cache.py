"""Rules, credentials and quotas, as this process sees them; read without waiting.

The laws: the view is kept current by one watch of the store, and listeners are told of every change
once the view shows it. A record that cannot be read is logged, and counts as absent; but of a rule
that cannot be read nobody knows what it forbids, so its key is listed in `damaged` for as long as
it is so: whoever decides must then decide against everybody. How any of it is changed is left to
`access`.
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
"""Told which rule has gone, and which has come; mostly, one of them is None."""
QuotaListener = Callable[[QuotaEntity], None]
"""Told whose quota has come, changed or gone."""

Value = TypeVar("Value")

_KEPT = (keys.ACLS, keys.USERS, keys.QUOTAS)

_log = get_logger(__name__)


class AclCache:
    """Everything under one prefix of the store, in the words of `access_model`."""

    def __init__(self, store: MetadataStore) -> None:
        self._acls: dict[str, Acl] = {}
        self._damaged: set[str] = set()
        self._credentials: dict[str, ScramCredential] = {}
        self._quotas: dict[str, tuple[QuotaEntity, Limits]] = {}
        self._limits: dict[QuotaEntity, Limits] = {}
        self._acl_listeners: list[AclListener] = []
        self._quota_listeners: list[QuotaListener] = []
        self.watch_cache = WatchCache(store, keys.ACCESS, self._changed, _is_kept)
        self.acls: Collection[Acl] = self._acls.values()
        self.damaged: AbstractSet[str] = self._damaged
        """The keys of rules that cannot be read."""
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
            _replace(self._credentials, key, _decoded(entry, decode_credential))
        else:
            self._quota_changed(key, entry)

    def _acl_changed(self, key: str, entry: Entry | None) -> None:
        after = _decoded(entry, decode_acl)
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
            except Exception:  # noqa: BLE001 - logged, as any edge does.
                # Somebody decides without this rule: that is as bad as a rule that nobody can read.
                self._damaged.add(key)
                _log.exception("listener to rules failed", before=before, after=after)

    def _quota_changed(self, key: str, entry: Entry | None) -> None:
        after = _decoded(entry, decode_quota)
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
            except Exception:  # noqa: BLE001 - logged, as any edge does.
                _log.exception("listener to quotas failed", entity=entity)


def _is_kept(key: str) -> bool:
    return key.startswith(_KEPT)


def _replace(values: dict[str, Value], key: str, after: Value | None) -> Value | None:
    """Set or remove what is under a key; what was there before."""
    before = values.get(key)
    if after is not None:
        values[key] = after
    elif before is not None:
        del values[key]
    return before


def _decoded(entry: Entry | None, decode: Callable[[Entry], Value]) -> Value | None:
    if entry is None:
        return None
    try:
        return decode(entry)
    except DamagedObjectError as error:
        _log.error("access record damaged", key=entry.key, reason=error.reason)
        return None
