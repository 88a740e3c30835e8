"""`Authorizer`: whether somebody may do something, as the rules stand.

The laws: super users may do everything. For all others `rules` decides, by the rules as this broker
sees them; while one of them cannot be read, nobody else may do anything, because it could be the
one that forbids it. Decisions are remembered until a rule changes.
"""

from typing import Final

from kafscale.config.sections.security import Authorization
from kafscale.metadata.access.model import ANY_PRINCIPAL, Acl, Operation, ResourceType
from kafscale.metadata.access.store import AclStore
from kafscale.security.acl.acl_index import AclIndex
from kafscale.security.principal import Principal

DECISIONS_COUNT_MAX: Final = 65_536
"""How many decisions are remembered; then all are forgotten, which is cheaper than choosing."""
NAME_LENGTH_MAX: Final = 249
"""Longer names, which no topic has, are not remembered: they would fill the memory."""


class Authorizer:
    """Decides by rules."""

    def __init__(self, settings: Authorization, rules: AclStore) -> None:
        self._super_users = frozenset(settings.super_users)
        self._by_default = settings.allow_everyone_if_no_acl_found
        self._damaged = rules.damaged
        self._rules = AclIndex(rules.acls)
        self._decisions: dict[tuple[object, ...], bool] = {}
        rules.subscribe_acls(self._changed)

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Whether somebody may do something to a resource."""
        if self._damaged:
            return self._is_super(principal)
        question = (principal.full_name, principal.groups, host, operation, resource_type, name)
        decision = self._decisions.get(question)
        if decision is None:
            decision = self._is_super(principal) or self._rules.allows(
                _principals(principal),
                host,
                operation,
                resource_type,
                name,
                by_default=self._by_default,
            )
            if len(name) <= NAME_LENGTH_MAX:
                self._remember(question, decision=decision)
        return decision

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there is, or could be, a resource of that type that they may do it to."""
        if self._damaged:
            return self._is_super(principal)
        question = (principal.full_name, principal.groups, host, operation, resource_type)
        decision = self._decisions.get(question)
        if decision is None:
            decision = self._is_super(principal) or self._rules.allows_any(
                _principals(principal), host, operation, resource_type, by_default=self._by_default
            )
            self._remember(question, decision=decision)
        return decision

    def _is_super(self, principal: Principal) -> bool:
        return principal.full_name in self._super_users or not self._super_users.isdisjoint(
            principal.groups
        )

    def _remember(self, question: tuple[object, ...], *, decision: bool) -> None:
        if len(self._decisions) >= DECISIONS_COUNT_MAX:
            self._decisions.clear()
        self._decisions[question] = decision

    def _changed(self, before: Acl | None, after: Acl | None) -> None:
        self._decisions.clear()
        if before is not None:
            self._rules.remove(before)
        if after is not None:
            self._rules.add(after)


def _principals(principal: Principal) -> tuple[str, ...]:
    """All that a rule may call somebody."""
    return (principal.full_name, ANY_PRINCIPAL, *principal.groups)
