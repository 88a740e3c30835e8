"""`Authorizer`: decides by ACLs whether a principal may perform an operation on a resource.

Super users may do everything. For others `AclIndex` decides. While an ACL cannot be decoded, all
others are denied everything, because it might be a deny rule. Decisions are cached until an ACL
changes.
"""

from typing import Final

from kafscale.config.sections.security import Authorization
from kafscale.metadata.access.model import ANY_PRINCIPAL, Acl, Operation, ResourceType
from kafscale.metadata.access.store import AccessStore
from kafscale.security.acl.acl_index import AclIndex
from kafscale.security.principal import Principal

DECISIONS_COUNT_MAX: Final = 65_536
"""The size of the decision cache; when it is full, it is cleared, which is cheaper than
eviction."""
NAME_LENGTH_MAX: Final = 249
"""Decisions on longer names, which no topic has, are not cached, to bound memory."""


class Authorizer:
    """Authorizes operations by ACLs."""

    def __init__(self, settings: Authorization, access_store: AccessStore) -> None:
        self._super_users = frozenset(settings.super_users)
        self._by_default = settings.allow_everyone_if_no_acl_found
        self._damaged = access_store.damaged
        self._index = AclIndex(access_store.acls)
        self._decisions: dict[tuple[object, ...], bool] = {}
        access_store.subscribe_acls(self._changed)

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """True if the principal may perform the operation on the resource."""
        if self._damaged:
            return self._is_super(principal)
        key = (principal.full_name, principal.groups, host, operation, resource_type, name)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._is_super(principal) or self._index.allows(
                _principals(principal),
                host,
                operation,
                resource_type,
                name,
                by_default=self._by_default,
            )
            if len(name) <= NAME_LENGTH_MAX:
                self._remember(key, decision=decision)
        return decision

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """True if the operation is allowed on at least one possible resource of the type."""
        if self._damaged:
            return self._is_super(principal)
        key = (principal.full_name, principal.groups, host, operation, resource_type)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._is_super(principal) or self._index.allows_any(
                _principals(principal), host, operation, resource_type, by_default=self._by_default
            )
            self._remember(key, decision=decision)
        return decision

    def _is_super(self, principal: Principal) -> bool:
        return principal.full_name in self._super_users or not self._super_users.isdisjoint(
            principal.groups
        )

    def _remember(self, key: tuple[object, ...], *, decision: bool) -> None:
        if len(self._decisions) >= DECISIONS_COUNT_MAX:
            self._decisions.clear()
        self._decisions[key] = decision

    def _changed(self, before: Acl | None, after: Acl | None) -> None:
        self._decisions.clear()
        if before is not None:
            self._index.remove(before)
        if after is not None:
            self._index.add(after)


def _principals(principal: Principal) -> tuple[str, ...]:
    """All principals whose ACLs apply."""
    return (principal.full_name, ANY_PRINCIPAL, *principal.groups)
