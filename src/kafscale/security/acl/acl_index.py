"""`AclIndex`: ACLs indexed for authorization. Pure.

Kafka's rules:

1. An ACL applies if its resource type is the same, its pattern matches the resource name, it names
   one of the client's principals, and its host matches, however the address is written; `User:*`
   and `*` match all.
2. Deny overrides allow. What no ACL allows is denied.
3. Read, write, delete and alter imply describe, and alter configs implies describe configs; denying
   them does not deny describe. A role allows, or denies, each of its operations.
4. Only if no ACL for any principal matches the resource, `by_default` decides.

The authorizer handles super users.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

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
from kafscale.net.address import canonical_ip

_IMPLIED: Final = {
    Operation.READ: Operation.DESCRIBE,
    Operation.WRITE: Operation.DESCRIBE,
    Operation.DELETE: Operation.DESCRIBE,
    Operation.ALTER: Operation.DESCRIBE,
    Operation.ALTER_CONFIGS: Operation.DESCRIBE_CONFIGS,
}

Value = TypeVar("Value")


def _covered_by(operation: Operation) -> frozenset[Operation]:
    """The operations that an ACL with this operation covers."""
    if operation is Operation.ALL:
        return frozenset(Operation)
    return ROLES.get(operation, frozenset({operation}))


def _allowed_by(operation: Operation) -> frozenset[Operation]:
    """The same, with implied operations."""
    covered = _covered_by(operation)
    return covered | {_IMPLIED[each] for each in covered if each in _IMPLIED}


_ALLOWING: Final = {
    operation: frozenset(acl for acl in Operation if operation in _allowed_by(acl))
    for operation in Operation
}
"""The ACL operations that allow each operation."""
_DENYING: Final = {
    requested: frozenset(granted for granted in Operation if requested in _covered_by(granted))
    for requested in Operation
}
"""The ACL operations that deny each operation."""


class PatternIndex(Generic[Value]):
    """Values by resource pattern, looked up by resource name.

    A literal pattern matches its own name, `*` every name, and a prefix every name that starts with
    it. The cost of a lookup depends on the number of different prefix lengths, not of prefixes.
    """

    __slots__ = ("_lengths", "_literals", "_prefixes")

    def __init__(self) -> None:
        self._literals: dict[str, Value] = {}
        self._prefixes: dict[str, Value] = {}
        self._lengths: Counter[int] = Counter()
        """The number of prefixes of each length."""

    def __bool__(self) -> bool:
        return bool(self._literals or self._prefixes)

    def get(self, pattern_type: PatternType, name: str) -> Value | None:
        return self._values_of(pattern_type).get(name)

    def put(self, pattern_type: PatternType, name: str, value: Value) -> None:
        """Set the value of a pattern."""
        values = self._values_of(pattern_type)
        if values is self._prefixes and name not in values:
            self._lengths[len(name)] += 1
        values[name] = value

    def drop(self, pattern_type: PatternType, name: str) -> None:
        """Remove a pattern."""
        values = self._values_of(pattern_type)
        del values[name]
        if values is self._prefixes:
            self._lengths[len(name)] -= 1
            if not self._lengths[len(name)]:
                del self._lengths[len(name)]

    def matching(self, name: str) -> Iterator[Value]:
        """The values of all patterns that match a name."""
        literals, prefixes = self._literals, self._prefixes
        if name in literals:
            yield literals[name]
        if ANY_NAME in literals and name != ANY_NAME:
            yield literals[ANY_NAME]
        for length in self._lengths:
            if length <= len(name) and (prefix := name[:length]) in prefixes:
                yield prefixes[prefix]

    def values(self) -> Iterator[Value]:
        yield from self._literals.values()
        yield from self._prefixes.values()

    def _values_of(self, pattern_type: PatternType) -> dict[str, Value]:
        return self._prefixes if pattern_type is PatternType.PREFIXED else self._literals


class AclIndex:
    """All ACLs of a cluster, by principal."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._by_principal: dict[tuple[ResourceType, str], PatternIndex[list[Acl]]] = {}
        self._counts: dict[ResourceType, PatternIndex[int]] = {
            each: PatternIndex() for each in ResourceType
        }
        """The number of ACLs per pattern, for any principal."""
        for acl in acls:
            self.add(acl)

    def add(self, acl: Acl) -> None:
        """Add an ACL that is not in the index."""
        acl = _with_canonical_host(acl)
        kind, name = acl.pattern_type, acl.resource_name
        patterns = self._by_principal.setdefault((acl.resource_type, acl.principal), PatternIndex())
        rules = patterns.get(kind, name)
        if rules is None:
            patterns.put(kind, name, [acl])
        else:
            rules.append(acl)
        counts = self._counts[acl.resource_type]
        counts.put(kind, name, (counts.get(kind, name) or 0) + 1)

    def remove(self, acl: Acl) -> None:
        """Remove an ACL that is in the index."""
        acl = _with_canonical_host(acl)
        kind, name = acl.pattern_type, acl.resource_name
        subject = (acl.resource_type, acl.principal)
        patterns = self._by_principal[subject]
        rules = patterns.get(kind, name)
        assert rules is not None, acl
        rules.remove(acl)
        if not rules:
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
        """True if a client with these principals may perform the operation on the resource.

        `by_default` is the result for a resource without any ACL.
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
        """True if some resource name exists for which the operation is allowed.

        As in Kafka, patterns are compared with patterns: an allowed pattern counts unless a denied
        pattern covers it completely.
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
        wildcard = (PatternType.LITERAL, ANY_NAME)
        if wildcard in denied:
            return False
        if wildcard in allowed:
            return True
        if by_default and self._counts[resource_type].get(*wildcard) is None:
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
    """True if a denied pattern covers all names of a pattern."""
    name = pattern[1]
    return pattern in denied or any(
        (PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1)
    )
