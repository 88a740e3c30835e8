"""Parses the ACLs and filters of CreateAcls, DeleteAcls and DescribeAcls.

Invariant: every stored ACL can be evaluated. As in Kafka, an ACL has one resource type, pattern
type, operation and permission, a principal with its type, and a host; whether the operation applies
to the resource type is not checked. If authorization is disabled, these APIs are refused.
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
"""How long a name in an ACL may be, so that the ACL fits into the metadata store."""

_UNKNOWN: Final = 0
_FOR_FILTERS: Final = frozenset({"ANY", "MATCH"})


class FilterFields(Protocol):
    """The fields of a filter in requests."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int


def check_enabled(broker: Services) -> None:
    """Raise if authorization is disabled."""
    if not broker.config.authorization.enabled:
        raise SecurityDisabledError("No Authorizer is configured on the broker")


def parse_acl(fields: AclToCreate) -> Acl:
    """Parse and check an ACL to create."""
    acl = Acl(
        _specific(ResourceType, fields.resource_type, "resourceType"),
        _specific(PatternType, fields.pattern_type, "patternType"),
        fields.resource_name,
        fields.principal,
        fields.host,
        _specific(Operation, fields.operation, "operation"),
        _specific(Permission, fields.permission_type, "permissionType"),
    )
    _check_names(acl)
    return acl


def parse_filter(fields: FilterFields) -> AclFilter:
    """Parse the filter of a request."""
    return AclFilter(
        _known(ResourceType, fields.resource_type, "patternFilter"),
        _known(PatternType, fields.pattern_type, "patternFilter"),
        fields.resource_name,
        fields.principal,
        fields.host,
        _known(Operation, fields.operation, "entryFilter"),
        _known(Permission, fields.permission_type, "entryFilter"),
    )


def format_acl(acl: Acl) -> str:
    """An ACL as text, for the audit log.

    >>> format_acl(Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:alice", "*",
    ...                Operation.READ, Permission.ALLOW))
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
    prefix = next(
        (each for each in (USER_PREFIX, GROUP_PREFIX) if acl.principal.startswith(each)), None
    )
    if ":" not in acl.principal:
        raise InvalidRequestError(
            f"Could not parse principal from `{acl.principal[:LENGTH_MAX]}` (no colon is present"
            " separating the principal type from the principal name)"
        )
    if prefix is None or acl.principal == prefix:
        raise InvalidRequestError(
            f"Could not parse principal from `{acl.principal[:LENGTH_MAX]}`: expected User:name"
            " or Group:name"
        )
    if not acl.host:
        raise InvalidRequestError("Invalid empty host")
    if max(len(acl.resource_name), len(acl.principal), len(acl.host)) > LENGTH_MAX:
        raise InvalidRequestError(f"names in an ACL have at most {LENGTH_MAX} characters")


def _specific(type_: type[Number], number: int, field: str) -> Number:
    """The enum member of a number in an ACL, which must not be one that only filters have."""
    member = _member(type_, number)
    name = member.name if member is not None else "UNKNOWN"
    if member is None or name in _FOR_FILTERS:
        raise InvalidRequestError(f"Invalid {field} {name}")
    return member


def _known(type_: type[Number], number: int, part: str) -> Number:
    """The enum member of a number in a filter."""
    member = _member(type_, number)
    if member is None:
        raise InvalidRequestError(f"Unknown {part}.")
    return member


def _member(type_: type[Number], number: int) -> Number | None:
    """The enum member of a number; None for UNKNOWN, and for numbers of newer versions."""
    with suppress(ValueError):
        if number != _UNKNOWN:
            return type_(number)
    return None
