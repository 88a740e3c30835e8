"""What `kafscale acl` asks of a cluster: the rules that match, new ones, and none of some more."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, TypeVar

from kafscale.admin.security.acl_words import called
from kafscale.admin.security.errors import check_access
from kafscale.client.client import Client
from kafscale.client.errors import AnsweredError
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Acl, Operation, PatternType, Permission, ResourceType
from kafscale.protocol.messages.create_acls import CREATE_ACLS, AclToCreate, CreateAclsRequest
from kafscale.protocol.messages.delete_acls import DELETE_ACLS, DeleteAclsRequest
from kafscale.protocol.messages.delete_acls import AclFilter as WrittenFilter
from kafscale.protocol.messages.describe_acls import (
    DESCRIBE_ACLS,
    DescribeAclsRequest,
    DescribedAcl,
    DescribedResource,
)
from kafscale.security.acl.filter import AclFilter

Data = dict[str, Any]
_Word = TypeVar("_Word", bound=IntEnum)


async def find(client: Client, filters: Iterable[AclFilter]) -> list[Acl]:
    """The rules that match any of the filters, in order."""
    found: set[Acl] = set()
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
        found |= {_read(resource, acl) for resource in response.resources for acl in resource.acls}
    return sorted(found)


async def add(client: Client, rules: Sequence[Acl]) -> None:
    """Add rules; those that could not be are told after the others are there."""
    request = CreateAclsRequest(acls=[AclToCreate(**_written(rule)) for rule in rules])
    response = await client.ask_controller(CREATE_ACLS, request)
    _check_all(
        (words(rule), answer.error_code, answer.error_message)
        for rule, answer in zip(rules, response.acls, strict=True)
    )


async def remove(client: Client, rules: Sequence[Acl]) -> None:
    """Remove these rules and no others; one that is gone already is none."""
    request = DeleteAclsRequest(filters=[WrittenFilter(**_written(rule)) for rule in rules])
    response = await client.ask_controller(DELETE_ACLS, request)
    answers = list(zip(rules, response.filters, strict=True))
    _check_all((words(rule), each.error_code, each.error_message) for rule, each in answers)
    _check_all(
        (words(rule), deleted.error_code, deleted.error_message)
        for rule, each in answers
        for deleted in each.acls
    )


def data(rule: Acl) -> Data:
    """A rule for programs, in Kafka's words."""
    return {
        "resourceType": rule.resource_type.name,
        "resourceName": rule.resource_name,
        "patternType": rule.pattern_type.name,
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation.name,
        "permission": rule.permission.name,
    }


def words(rule: Acl) -> str:
    """A rule for people.

    >>> words(Acl(ResourceType.TOPIC, PatternType.PREFIXED, "shop-", "User:alice", "*",
    ...           Operation.READ, Permission.ALLOW))
    'allow User:alice Read on Topic shop-*'
    """
    any_more = "*" if rule.pattern_type is PatternType.PREFIXED else ""
    return (
        f"{rule.permission.name.lower()} {rule.principal} {called(rule.operation)}"
        f" on {called(rule.resource_type)} {rule.resource_name}{any_more}"
    )


def _read(resource: DescribedResource, acl: DescribedAcl) -> Acl:
    return Acl(
        _known(ResourceType, resource.resource_type),
        _known(PatternType, resource.pattern_type),
        resource.resource_name,
        acl.principal,
        acl.host,
        _known(Operation, acl.operation),
        _known(Permission, acl.permission_type),
    )


def _known(kind: type[_Word], number: int) -> _Word:
    """What a number means; newer brokers may have some that we do not know."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def _written(rule: Acl) -> dict[str, Any]:
    """The fields of a rule, as all requests call them."""
    return {
        "resource_type": rule.resource_type,
        "resource_name": rule.resource_name,
        "pattern_type": rule.pattern_type,
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation,
        "permission_type": rule.permission,
    }


def _check_all(answers: Iterable[tuple[str, int, str | None]]) -> None:
    problems: dict[str, None] = {}
    for subject, code, message in answers:
        try:
            check_access(subject, code, message)
        except AnsweredError as error:
            problems[str(error)] = None
    if problems:
        raise KafscaleError("\n".join(problems))
