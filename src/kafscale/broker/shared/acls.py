"""What the handlers of the three APIs on rules have in common: how rules and filters are read.

The law: what is stored as a rule can be decided by. As in Kafka, a rule names one resource type,
pattern type, operation and permission, a principal with its type, and a host; whether the operation
makes sense for the resource is not asked. Where authorization is off, there are no rules to talk
about.
"""

from contextlib import suppress
from enum import IntEnum
from typing import Final, Protocol, TypeVar

from kafscale.broker.services import Services
from kafscale.errors import InvalidRequestError, SecurityDisabledError
from kafscale.metadata.access.model import (
    CLUSTER_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kafscale.protocol.messages.create_acls import AclToCreate
from kafscale.security.acl.filter import AclFilter
from kafscale.security.principal import GROUP_PREFIX, USER_PREFIX

Number = TypeVar("Number", bound=IntEnum)

LENGTH_MAX: Final = 4_096
"""How long a name in a rule may be, so that a rule fits into the store."""

_UNKNOWN: Final = 0


class WrittenFilter(Protocol):
    """A filter, as requests have it."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int


def check_enabled(broker: Services) -> None:
    """Refuse, where rules decide about nothing."""
    if not broker.config.authorization.enabled:
        raise SecurityDisabledError("No Authorizer is configured on the broker")


def read_acl(written: AclToCreate) -> Acl:
    """The rule that somebody wants, if it can be one."""
    acl = Acl(
        _known(ResourceType, written.resource_type),
        _known(PatternType, written.pattern_type),
        written.resource_name,
        written.principal,
        written.host,
        _known(Operation, written.operation),
        _known(Permission, written.permission_type),
    )
    if (
        acl.resource_type is ResourceType.ANY
        or acl.pattern_type in {PatternType.ANY, PatternType.MATCH}
        or acl.operation is Operation.ANY
        or acl.permission is Permission.ANY
    ):
        raise InvalidRequestError("ANY and MATCH are for filters; a rule says what it means")
    _check_names(acl)
    return acl


def read_filter(written: WrittenFilter) -> AclFilter:
    """The filter that somebody has sent."""
    return AclFilter(
        _known(ResourceType, written.resource_type),
        _known(PatternType, written.pattern_type),
        written.resource_name,
        written.principal,
        written.host,
        _known(Operation, written.operation),
        _known(Permission, written.permission_type),
    )


def told(acl: Acl) -> str:
    """A rule in words, for the audit log.

    >>> told(Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:alice", "*",
    ...          Operation.READ, Permission.ALLOW))
    'ALLOW User:alice from * to READ TOPIC LITERAL:orders'
    """
    return (
        f"{acl.permission.name} {acl.principal} from {acl.host} to {acl.operation.name}"
        f" {acl.resource_type.name} {acl.pattern_type.name}:{acl.resource_name}"
    )


def _check_names(acl: Acl) -> None:
    if not acl.resource_name:
        raise InvalidRequestError("Invalid empty resource name")
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise InvalidRequestError(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    kind = next(
        (kind for kind in (USER_PREFIX, GROUP_PREFIX) if acl.principal.startswith(kind)), None
    )
    if kind is None or acl.principal == kind:
        raise InvalidRequestError(
            f"Could not parse principal from `{acl.principal[:LENGTH_MAX]}`: it is not User:name"
            " or Group:name"
        )
    if not acl.host:
        raise InvalidRequestError("Invalid empty host")
    if max(len(acl.resource_name), len(acl.principal), len(acl.host)) > LENGTH_MAX:
        raise InvalidRequestError(f"a name of more than {LENGTH_MAX} characters")


def _known(kind: type[Number], number: int) -> Number:
    """What a number means; neither UNKNOWN nor what newer clients may know means anything."""
    with suppress(ValueError):
        if number != _UNKNOWN:
            return kind(number)
    raise InvalidRequestError(f"Invalid {kind.__name__} {number}")
