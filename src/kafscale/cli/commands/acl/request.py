"""Translates the options of `kafscale acl` to ACLs to add, or to filters. No I/O.

As in `kafka-acls`, the result has one entry for each combination of principal, resource and
operation. `--producer` and `--consumer` stand for the ACLs that such a client needs; a role is one
ACL for several operations. Invalid combinations raise `ValueError`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, NamedTuple

import msgspec

from kafscale.admin.security.acls import display_name, is_supported
from kafscale.metadata.access.model import (
    ANY_HOST,
    CLUSTER_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kafscale.security.acl.filter import AclFilter

_PRODUCER: Final[Mapping[ResourceType, Sequence[Operation]]] = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_CONSUMER: Final[Mapping[ResourceType, Sequence[Operation]]] = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}


class PrincipalEntry(NamedTuple):
    """A principal, its host and the permission; None matches any principal or host."""

    principal: str | None = None
    host: str | None = None
    permission: Permission = Permission.ANY


def principal_entries(
    permission: Permission, principals: Iterable[str], hosts: Iterable[str] = ()
) -> list[PrincipalEntry]:
    """One entry for each combination of principal and host."""
    names = list(principals)
    host_names: list[str | None] = [*hosts]
    if host_names and not names:
        raise ValueError("a host needs a principal: use --allow-host with --allow-principal")
    for principal in names:
        kind, _, name = principal.partition(":")
        if kind not in {"User", "Group"} or not name:
            raise ValueError(f"{principal!r} is not a principal, such as User:alice")
    return [
        PrincipalEntry(principal, host, permission)
        for principal, host in product(names, host_names or [None])
    ]


@dataclass(frozen=True, kw_only=True)
class AclRequest:
    """The values of the options."""

    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    users: Sequence[str] = ()
    cluster: bool = False
    pattern: PatternType = PatternType.LITERAL
    entries: Sequence[PrincipalEntry] = ()
    operations: Sequence[Operation] = ()
    producer: bool = False
    consumer: bool = False

    def __post_init__(self) -> None:
        if not (self.producer or self.consumer):
            return
        if self.operations or any(each.permission is Permission.DENY for each in self.entries):
            raise ValueError(
                "--producer and --consumer define the operations to allow; leave out --operation,"
                " --role and --deny-principal"
            )
        if self.producer and not (self.topics or self.transactional_ids):
            raise ValueError("--producer needs a --topic or a --transactional-id")
        if self.consumer and not (self.topics and self.groups):
            raise ValueError("--consumer needs a --topic and a --group")

    def to_acls(self) -> list[Acl]:
        """The ACLs to add."""
        if not self.entries:
            raise ValueError("name a principal: --allow-principal or --deny-principal")
        if not any(self._resources()):
            raise ValueError(
                "name a resource: --topic, --group, --cluster, --transactional-id or --user"
            )
        return [
            Acl(
                resource_type,
                self._pattern(resource_type),
                name,
                principal or "",
                host or ANY_HOST,
                operation,
                permission,
            )
            for resource_type, name in self._resources()
            for operation in self._operations(resource_type, Operation.ALL)
            for principal, host, permission in self.entries
        ]

    def to_filters(self) -> list[AclFilter]:
        """Filters for existing ACLs; an option that is not given matches everything."""
        filters = [
            AclFilter(resource_type, self._pattern(resource_type), name, operation=operation)
            for resource_type, name in self._resources()
            for operation in self._operations(resource_type, Operation.ANY)
        ] or [AclFilter(operation=operation) for operation in self.operations or (Operation.ANY,)]
        return [
            msgspec.structs.replace(
                each, principal=entry.principal, host=entry.host, permission=entry.permission
            )
            for each in filters
            for entry in self.entries or (PrincipalEntry(),)
        ]

    def _resources(self) -> Iterator[tuple[ResourceType, str]]:
        yield from ((ResourceType.TOPIC, name) for name in self.topics)
        yield from ((ResourceType.GROUP, name) for name in self.groups)
        yield from ((ResourceType.TRANSACTIONAL_ID, name) for name in self.transactional_ids)
        yield from ((ResourceType.USER, name) for name in self.users)
        if self.cluster:
            yield ResourceType.CLUSTER, CLUSTER_NAME

    def _pattern(self, resource_type: ResourceType) -> PatternType:
        """The pattern type; the cluster has only one name, so its pattern is always literal."""
        return PatternType.LITERAL if resource_type is ResourceType.CLUSTER else self.pattern

    def _operations(self, resource_type: ResourceType, default: Operation) -> list[Operation]:
        """The operations on resources of a type."""
        if self.producer or self.consumer:
            needed: dict[Operation, None] = {}
            for is_set, operations in ((self.producer, _PRODUCER), (self.consumer, _CONSUMER)):
                needed |= dict.fromkeys(operations.get(resource_type, ()) if is_set else ())
            return list(needed)
        for operation in self.operations:
            if not is_supported(resource_type, operation):
                raise ValueError(
                    f"a {display_name(resource_type)} does not support the operation"
                    f" {display_name(operation)}"
                )
        return list(dict.fromkeys(self.operations)) or [default]
