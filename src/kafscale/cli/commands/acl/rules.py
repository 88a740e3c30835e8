"""What the options of `kafscale acl` mean together: rules to add, or filters for rules. Pure.

The law is that of `kafka-acls`: everybody who is named, for every resource that is named, for every
operation that is named. `--producer` and `--consumer` stand for what such a program needs; a role
is one rule that stands for several operations. What cannot be meant is a `ValueError`.
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


class Party(NamedTuple):
    """Somebody, and what is to be said about them; None is anybody, from anywhere."""

    principal: str | None = None
    host: str | None = None
    permission: Permission = Permission.ANY


def parties(
    permission: Permission, principals: Iterable[str], hosts: Iterable[str] = ()
) -> list[Party]:
    """Everybody who is named, from every host that is named."""
    named = list(principals)
    places: list[str | None] = [*hosts]
    if places and not named:
        raise ValueError(
            "a host goes with a principal, such as --allow-host with --allow-principal"
        )
    for principal in named:
        kind, _, name = principal.partition(":")
        if kind not in {"User", "Group"} or not name:
            raise ValueError(f"{principal!r} is not a principal, such as User:alice")
    return [Party(who, where, permission) for who, where in product(named, places or [None])]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the options say."""

    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    users: Sequence[str] = ()
    cluster: bool = False
    pattern: PatternType = PatternType.LITERAL
    parties: Sequence[Party] = ()
    operations: Sequence[Operation] = ()
    producer: bool = False
    consumer: bool = False

    def __post_init__(self) -> None:
        if not (self.producer or self.consumer):
            return
        if self.operations or any(each.permission is Permission.DENY for each in self.parties):
            raise ValueError(
                "--producer and --consumer say what is allowed; leave out --operation, --role and"
                " --deny-principal"
            )
        if self.producer and not (self.topics or self.transactional_ids):
            raise ValueError("--producer needs a --topic, or a --transactional-id")
        if self.consumer and not (self.topics and self.groups):
            raise ValueError("--consumer needs a --topic and a --group")

    def rules(self) -> list[Acl]:
        """The rules to add."""
        if not self.parties:
            raise ValueError("say who: --allow-principal or --deny-principal")
        if not any(self._resources()):
            raise ValueError(
                "say what it is about: --topic, --group, --cluster, --transactional-id or --user"
            )
        return [
            Acl(
                kind, self._pattern(kind), name, principal or "", host or ANY_HOST, deed, permission
            )
            for kind, name in self._resources()
            for deed in self._deeds(kind, Operation.ALL)
            for principal, host, permission in self.parties
        ]

    def filters(self) -> list[AclFilter]:
        """Which rules are meant; what is not said may be anything."""
        meant = [
            AclFilter(kind, self._pattern(kind), name, operation=deed)
            for kind, name in self._resources()
            for deed in self._deeds(kind, Operation.ANY)
        ] or [AclFilter(operation=deed) for deed in self.operations or (Operation.ANY,)]
        return [
            msgspec.structs.replace(
                each, principal=party.principal, host=party.host, permission=party.permission
            )
            for each in meant
            for party in self.parties or (Party(),)
        ]

    def _resources(self) -> Iterator[tuple[ResourceType, str]]:
        yield from ((ResourceType.TOPIC, name) for name in self.topics)
        yield from ((ResourceType.GROUP, name) for name in self.groups)
        yield from ((ResourceType.TRANSACTIONAL_ID, name) for name in self.transactional_ids)
        yield from ((ResourceType.USER, name) for name in self.users)
        if self.cluster:
            yield ResourceType.CLUSTER, CLUSTER_NAME

    def _pattern(self, kind: ResourceType) -> PatternType:
        """The cluster has one name, which there is nothing like."""
        return PatternType.LITERAL if kind is ResourceType.CLUSTER else self.pattern

    def _deeds(self, kind: ResourceType, default: Operation) -> list[Operation]:
        """The operations on a resource of some type."""
        if self.producer or self.consumer:
            needed: dict[Operation, None] = {}
            for is_meant, deeds in ((self.producer, _PRODUCER), (self.consumer, _CONSUMER)):
                needed |= dict.fromkeys(deeds.get(kind, ()) if is_meant else ())
            return list(needed)
        for operation in self.operations:
            if not is_supported(kind, operation):
                raise ValueError(
                    f"{display_name(operation)} cannot be done to a {display_name(kind)}"
                )
        return list(dict.fromkeys(self.operations)) or [default]
