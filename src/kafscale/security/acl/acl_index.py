"""`AclIndex`: ACLs in an order in which they can be asked. Pure.

The laws are Kafka's:

1. A rule is for a resource whose type is the same and whose name its pattern matches, for somebody
   one of whose principals it names, and for the host that it names, however its
   address is written; `User:*` and `*` are for all.
2. What a rule denies is denied, whatever others allow. What no rule allows is denied.
3. Who may read, write, delete or alter something may also describe it, and who may alter configs
   may also describe them; who may not, is not thereby kept from describing. A role allows, and
   denies, what its operations do.
4. Only where no rule at all speaks of a resource, whoever the rules are for, somebody may be
   allowed by default.

Who is above the rules is left to the authorizer.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kafscale.metadata.access.model import (
    ANY_HOST,
    ANY_NAME,
    ROLES,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kafscale.net.canonical_ip import canonical_ip
from kafscale.security.acl.pattern_index import PatternIndex

_IMPLIED: Final = {
    Operation.READ: Operation.DESCRIBE,
    Operation.WRITE: Operation.DESCRIBE,
    Operation.DELETE: Operation.DESCRIBE,
    Operation.ALTER: Operation.DESCRIBE,
    Operation.ALTER_CONFIGS: Operation.DESCRIBE_CONFIGS,
}


def _spoken_of(operation: Operation) -> frozenset[Operation]:
    """The operations that a rule with this one is about."""
    if operation is Operation.ALL:
        return frozenset(Operation)
    return ROLES.get(operation, frozenset({operation}))


def _allowed_by(operation: Operation) -> frozenset[Operation]:
    """The same, with what goes without saying for who may do them."""
    spoken = _spoken_of(operation)
    return spoken | {_IMPLIED[each] for each in spoken if each in _IMPLIED}


_ALLOWING: Final = {
    asked: frozenset(said for said in Operation if asked in _allowed_by(said))
    for asked in Operation
}
"""By the operation that somebody wants, those that a rule must have to allow it."""
_DENYING: Final = {
    asked: frozenset(said for said in Operation if asked in _spoken_of(said)) for asked in Operation
}
"""The same, for a rule to deny it."""


class AclIndex:
    """All rules of a cluster, by whom they are for."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._by_principal: dict[tuple[ResourceType, str], PatternIndex[list[Acl]]] = {}
        self._counts: dict[ResourceType, PatternIndex[int]] = {
            each: PatternIndex() for each in ResourceType
        }
        """How many rules there are for a pattern, whoever they are for."""
        for acl in acls:
            self.add(acl)

    def add(self, acl: Acl) -> None:
        """Add a rule that is not there yet."""
        acl = _with_canonical_host(acl)
        kind, name = acl.pattern_type, acl.resource_name
        patterns = self._by_principal.setdefault((acl.resource_type, acl.principal), PatternIndex())
        found = patterns.get(kind, name)
        if found is None:
            patterns.put(kind, name, [acl])
        else:
            found.append(acl)
        counts = self._counts[acl.resource_type]
        counts.put(kind, name, (counts.get(kind, name) or 0) + 1)

    def remove(self, acl: Acl) -> None:
        """Remove a rule that is there."""
        acl = _with_canonical_host(acl)
        kind, name = acl.pattern_type, acl.resource_name
        subject = (acl.resource_type, acl.principal)
        patterns = self._by_principal[subject]
        found = patterns.get(kind, name)
        assert found is not None, acl
        found.remove(acl)
        if not found:
            patterns.drop(kind, name)
            if not patterns:
                del self._by_principal[subject]
        counts = self._counts[acl.resource_type]
        count = counts.get(kind, name)
        assert count is not None, acl
        if count > 1:
            counts.put(kind, name, count - 1)
        else:
            counts.drop(kind, name)

    def allows(
        self,
        principals: Sequence[str],
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        by_default: bool = False,
    ) -> bool:
        """Whether somebody who has these principals may do something to a resource.

        `by_default` is the answer for a resource that no rule speaks of.
        """
        allowing, denying = _ALLOWING[operation], _DENYING[operation]
        hosts = (canonical_ip(host), ANY_HOST)
        is_allowed = False
        for principal in principals:
            patterns = self._by_principal.get((resource_type, principal))
            if patterns is None:
                continue
            for acls in patterns.matching(name):
                for acl in acls:
                    if acl.host not in hosts:
                        continue
                    if acl.permission is Permission.ALLOW:
                        is_allowed = is_allowed or acl.operation in allowing
                    elif acl.operation in denying:
                        return False
        if is_allowed or not by_default:
            return is_allowed
        return not any(self._counts[resource_type].matching(name))

    def allows_any(
        self,
        principals: Sequence[str],
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        *,
        by_default: bool = False,
    ) -> bool:
        """Whether there is a name of which all the rules say that they may do it.

        As in Kafka, patterns are compared with patterns: what is allowed counts unless a pattern
        that is denied covers all of it.
        """
        allowing, denying = _ALLOWING[operation], _DENYING[operation]
        hosts = (canonical_ip(host), ANY_HOST)
        allowed: set[tuple[PatternType, str]] = set()
        denied: set[tuple[PatternType, str]] = set()
        for acl in self._of(principals, resource_type):
            if acl.host in hosts:
                pattern = (acl.pattern_type, acl.resource_name)
                if acl.permission is Permission.ALLOW:
                    if acl.operation in allowing:
                        allowed.add(pattern)
                elif acl.operation in denying:
                    denied.add(pattern)
        everything = (PatternType.LITERAL, ANY_NAME)
        if everything in denied:
            return False
        if everything in allowed:
            return True
        if by_default and self._counts[resource_type].get(*everything) is None:
            return True
        return any(not _is_covered(pattern, denied) for pattern in allowed)

    def _of(self, principals: Sequence[str], resource_type: ResourceType) -> Iterable[Acl]:
        for principal in principals:
            patterns = self._by_principal.get((resource_type, principal))
            if patterns is not None:
                for acls in patterns.values():
                    yield from acls


def _with_canonical_host(acl: Acl) -> Acl:
    if acl.host == ANY_HOST:
        return acl
    return msgspec.structs.replace(acl, host=canonical_ip(acl.host))


def _is_covered(pattern: tuple[PatternType, str], denied: set[tuple[PatternType, str]]) -> bool:
    """Whether a denied pattern covers all names of another."""
    name = pattern[1]
    return pattern in denied or any(
        (PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1)
    )
