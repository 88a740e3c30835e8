"""Find, add and remove ACLs, and the names of their operations and resources.

>>> parse_operation("describe-configs"), display_name(Operation.DESCRIBE_CONFIGS)
(<Operation.DESCRIBE_CONFIGS: 10>, 'DescribeConfigs')
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, TypeVar

import msgspec

from kafscale.client.client import Client
from kafscale.client.errors import BrokerResponseError, check
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import (
    ROLES,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_acls import CREATE_ACLS, AclToCreate, CreateAclsRequest
from kafscale.protocol.messages.delete_acls import DELETE_ACLS, DeleteAclsRequest
from kafscale.protocol.messages.delete_acls import AclFilter as FilterMessage
from kafscale.protocol.messages.describe_acls import (
    DESCRIBE_ACLS,
    DescribeAclsRequest,
    DescribedAcl,
    DescribedResource,
)
from kafscale.security.acl.filter import AclFilter

_Enum = TypeVar("_Enum", bound=IntEnum)

_SUPPORTED: Final[Mapping[ResourceType, frozenset[Operation]]] = {
    ResourceType.TOPIC: frozenset(
        {
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset(
        {
            Operation.READ,
            Operation.DELETE,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    ResourceType.CLUSTER: frozenset(
        {
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset(
        {Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT}
    ),
    ResourceType.USER: frozenset({Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS}),
}
"""The operations of each resource type, as in Kafka's AclEntry."""

_OPERATIONS_BY_NAME: Final = {
    operation.name.replace("_", "").lower(): operation
    for operation in Operation
    if operation > Operation.ANY and operation not in ROLES
}

_HINTS: Final = {
    ErrorCode.SECURITY_DISABLED: "set authorization.enabled (KAFSCALE_AUTHORIZATION_ENABLED=true)"
    " for the brokers, and name a user in authorization.superUsers who can add the first ACLs",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "only users in authorization.superUsers, or"
    " with an ACL for Alter on the cluster, can do this; log in as one with --command-config or"
    " KAFSCALE_CLIENT_USERNAME",
}


class AclInfo(msgspec.Struct, frozen=True, rename="camel"):
    """An ACL with Kafka's names of its enums."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


async def find(client: Client, filters: Iterable[AclFilter]) -> list[Acl]:
    """The ACLs that match any of the filters, sorted."""
    matching: set[Acl] = set()
    for each in dict.fromkeys(filters):
        request = DescribeAclsRequest(
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            pattern_type=each.pattern_type,
            principal=each.principal,
            host=each.host,
            operation=each.operation,
            permission_type=each.permission,
        )
        response = await client.ask_controller(DESCRIBE_ACLS, request)
        check_access("rules", response.error_code, response.error_message)
        matching |= {
            _decode(resource, acl) for resource in response.resources for acl in resource.acls
        }
    return sorted(matching)


async def add(client: Client, acls: Sequence[Acl]) -> None:
    """Add ACLs; raise the problems of those that failed after adding the others."""
    request = CreateAclsRequest(acls=[AclToCreate(**_request_fields(acl)) for acl in acls])
    response = await client.ask_controller(CREATE_ACLS, request)
    _raise_problems(
        (format_acl(acl), result.error_code, result.error_message)
        for acl, result in zip(acls, response.acls, strict=True)
    )


async def remove(client: Client, acls: Sequence[Acl]) -> None:
    """Remove exactly these ACLs; those that do not exist are ignored."""
    request = DeleteAclsRequest(filters=[FilterMessage(**_request_fields(acl)) for acl in acls])
    response = await client.ask_controller(DELETE_ACLS, request)
    results = list(zip(acls, response.filters, strict=True))
    _raise_problems((format_acl(acl), each.error_code, each.error_message) for acl, each in results)
    _raise_problems(
        (format_acl(acl), deleted.error_code, deleted.error_message)
        for acl, each in results
        for deleted in each.acls
    )


def acl_info(acl: Acl) -> AclInfo:
    return AclInfo(
        resource_type=acl.resource_type.name,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type.name,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation.name,
        permission=acl.permission.name,
    )


def format_acl(acl: Acl) -> str:
    """Format an ACL for people.

    >>> format_acl(Acl(ResourceType.TOPIC, PatternType.PREFIXED, "shop-", "User:alice", "*",
    ...           Operation.READ, Permission.ALLOW))
    'allow User:alice Read on Topic shop-*'
    """
    wildcard = "*" if acl.pattern_type is PatternType.PREFIXED else ""
    return (
        f"{acl.permission.name.lower()} {acl.principal} {display_name(acl.operation)}"
        f" on {display_name(acl.resource_type)} {acl.resource_name}{wildcard}"
    )


def parse_operation(text: str) -> Operation:
    """Parse the name of an operation; case, `-` and `_` are ignored."""
    operation = _OPERATIONS_BY_NAME.get(text.replace("_", "").replace("-", "").lower())
    if operation is None:
        names = ", ".join(display_name(each) for each in _OPERATIONS_BY_NAME.values())
        raise ValueError(f"{text!r} is not an operation; the operations are {names}")
    return operation


def display_name(value: IntEnum) -> str:
    """The name of an operation or resource type as Kafka's tools print it; roles are marked.

    >>> display_name(Operation.PRODUCER), display_name(ResourceType.TRANSACTIONAL_ID)
    ('role producer', 'TransactionalId')
    """
    if value in ROLES and isinstance(value, Operation):
        return f"role {value.name.lower()}"
    return "".join(part.capitalize() for part in value.name.split("_"))


def is_supported(resource_type: ResourceType, operation: Operation) -> bool:
    """True if the operation exists for this resource type."""
    operations = ROLES.get(operation, frozenset({operation}))
    return operation is Operation.ALL or bool(operations & _SUPPORTED[resource_type])


def _decode(resource: DescribedResource, acl: DescribedAcl) -> Acl:
    return Acl(
        _enum_or_unknown(ResourceType, resource.resource_type),
        _enum_or_unknown(PatternType, resource.pattern_type),
        resource.resource_name,
        acl.principal,
        acl.host,
        _enum_or_unknown(Operation, acl.operation),
        _enum_or_unknown(Permission, acl.permission_type),
    )


def _enum_or_unknown(kind: type[_Enum], number: int) -> _Enum:
    """Decode an enum; newer brokers may return numbers that are unknown here."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def _request_fields(acl: Acl) -> dict[str, Any]:
    """The fields of an ACL as all ACL requests name them."""
    return {
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


def _raise_problems(results: Iterable[tuple[str, int, str | None]]) -> None:
    problems: dict[str, None] = {}
    for subject, code, message in results:
        try:
            check_access(subject, code, message)
        except BrokerResponseError as error:
            problems[str(error)] = None
    if problems:
        raise KafscaleError("\n".join(problems))


def check_access(subject: str, code: int, message: str | None = None) -> None:
    """Raise an error unless the response about `subject` is a success."""
    check(subject, code, message, hint=_HINTS.get(ErrorCode.of(code), ""))
