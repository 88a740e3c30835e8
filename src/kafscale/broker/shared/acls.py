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
        _parse_enum(ResourceType, fields.resource_type),
        _parse_enum(PatternType, fields.pattern_type),
        fields.resource_name,
        fields.principal,
        fields.host,
        _parse_enum(Operation, fields.operation),
        _parse_enum(Permission, fields.permission_type),
    )
    if (
        acl.resource_type is ResourceType.ANY
        or acl.pattern_type in {PatternType.ANY, PatternType.MATCH}
        or acl.operation is Operation.ANY
        or acl.permission is Permission.ANY
    ):
        raise InvalidRequestError("an ACL must not contain ANY or MATCH; these are for filters")
    _check_names(acl)
    return acl


def parse_filter(fields: FilterFields) -> AclFilter:
    """Parse the filter of a request."""
    return AclFilter(
        _parse_enum(ResourceType, fields.resource_type),
        _parse_enum(PatternType, fields.pattern_type),
        fields.resource_name,
        fields.principal,
        fields.host,
        _parse_enum(Operation, fields.operation),
        _parse_enum(Permission, fields.permission_type),
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
    if prefix is None or acl.principal == prefix:
        raise InvalidRequestError(
            f"Could not parse principal from `{acl.principal[:LENGTH_MAX]}`: expected User:name"
            " or Group:name"
        )
    if not acl.host:
        raise InvalidRequestError("Invalid empty host")
    if max(len(acl.resource_name), len(acl.principal), len(acl.host)) > LENGTH_MAX:
        raise InvalidRequestError(f"names in an ACL have at most {LENGTH_MAX} characters")


def _parse_enum(type_: type[Number], number: int) -> Number:
    """The enum member of a number; raises for UNKNOWN, and for numbers of newer versions."""
    with suppress(ValueError):
        if number != _UNKNOWN:
            return type_(number)
    raise InvalidRequestError(f"Invalid {type_.__name__} {number}")
