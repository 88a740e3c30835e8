"""ACLs, users and quotas.

Lists are bounded. If brokers refuse to list something, the response has the reason beside an empty
list, so that the page can show it. Passwords are salted here and are in no response.
"""

from collections.abc import Callable, Sequence
from random import SystemRandom
from typing import Final, TypeVar

from kafscale.admin.security import acls, quotas, users
from kafscale.admin.security.acls import display_name, is_supported
from kafscale.client.client import Client
from kafscale.client.errors import BrokerResponseError
from kafscale.console.api.route import ApiContext, ApiRequest, Route
from kafscale.console.schema.access import (
    AccessOptions,
    Acl,
    Acls,
    NewAcl,
    NewPassword,
    NewUser,
    Quota,
    Quotas,
    SetQuota,
    User,
    Users,
)
from kafscale.errors import DuplicateResourceError, InvalidRequestError, ResourceNotFoundError
from kafscale.metadata.access import model
from kafscale.metadata.access.model import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    ScramMechanism,
)
from kafscale.protocol.error_codes import ErrorCode
from kafscale.security.acl.filter import AclFilter
from kafscale.security.quota.types import QUOTA_TYPES
from kafscale.security.sasl.scram import ITERATIONS_DEFAULT

ITEMS_MAX: Final = 5_000
_RESOURCES: Final = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.USER,
)
_PATTERNS: Final = (PatternType.LITERAL, PatternType.PREFIXED)
_ENTITIES: Final = frozenset({"user", "client-id", "ip"})
_SHOWN_ERRORS: Final = frozenset(
    {ErrorCode.SECURITY_DISABLED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
)
"""Errors that a page shows instead of failing."""

Item = TypeVar("Item")
AclEnum = TypeVar("AclEnum", ResourceType, Operation, PatternType, Permission)


async def form_options(_: ApiContext, __: ApiRequest) -> AccessOptions:
    return AccessOptions(
        operations={
            kind.name: [each.name for each in Operation if each > 1 and is_supported(kind, each)]
            for kind in _RESOURCES
        },
        pattern_types=[each.name for each in _PATTERNS],
        mechanisms=[each.label for each in ScramMechanism],
        quota_keys=list(QUOTA_TYPES),
    )


async def list_acls(context: ApiContext, _: ApiRequest) -> Acls:
    async with context.connections.client() as client:
        try:
            matching = await acls.find(client, [AclFilter()])
        except BrokerResponseError as error:
            is_enabled = error.error_code is not ErrorCode.SECURITY_DISABLED
            return Acls(is_enabled=is_enabled, items=[], problem=_shown_problem(error))
    items, problem = _bounded([acls.acl_info(each) for each in matching])
    return Acls(is_enabled=True, items=items, problem=problem)


async def add_acl(context: ApiContext, request: ApiRequest) -> Acl:
    acl = _acl_to_change(request.body)
    async with context.connections.client() as client:
        await acls.add(client, [acl])
    return acls.acl_info(acl)


async def remove_acl(context: ApiContext, request: ApiRequest) -> None:
    async with context.connections.client() as client:
        await acls.remove(client, [_acl_to_change(request.body)])


async def list_users(context: ApiContext, _: ApiRequest) -> Users:
    async with context.connections.client() as client:
        try:
            listed = await users.list_all(client)
        except BrokerResponseError as error:
            return Users(items=[], problem=_shown_problem(error))
    shown = [
        User(name=each.user, mechanisms=[credential.mechanism for credential in each.credentials])
        for each in listed
    ]
    items, problem = _bounded(shown)
    return Users(items=items, problem=problem)


async def create_user(context: ApiContext, request: ApiRequest) -> User:
    body: NewUser = request.body
    if not body.name:
        raise InvalidRequestError("a user needs a name")
    mechanisms = _mechanisms(body.mechanisms) or list(ScramMechanism)
    async with context.connections.client() as client:
        if await users.mechanisms_of(client, body.name):
            raise DuplicateResourceError(
                f"user {body.name} already exists; change the password, or choose another name"
            )
        await users.create(client, body.name, _password(body.password), mechanisms)
    return _user(body.name, mechanisms)


async def change_password(context: ApiContext, request: ApiRequest) -> User:
    name, body = request.path["name"], request.body
    async with context.connections.client() as client:
        await _check_exists(client, name)
        changed = await users.change_password(client, name, _password(body.password), ())
    return _user(name, changed)


async def delete_user(context: ApiContext, request: ApiRequest) -> None:
    name = request.path["name"]
    async with context.connections.client() as client:
        await _check_exists(client, name)
        await users.delete(client, [name], (), missing_ok=True)


async def list_quotas(context: ApiContext, _: ApiRequest) -> Quotas:
    async with context.connections.client() as client:
        try:
            described = await quotas.describe(client, {})
        except BrokerResponseError as error:
            return Quotas(items=[], problem=_shown_problem(error))
    items, problem = _bounded([Quota(entity=each.entity, values=each.limits) for each in described])
    return Quotas(items=items, problem=problem)


async def set_quota(context: ApiContext, request: ApiRequest) -> Quotas:
    body: SetQuota = request.body
    _check_entity(body.entity)
    if not body.values:
        raise InvalidRequestError("values is empty: name at least one quota")
    for key, value in body.values.items():
        if key not in QUOTA_TYPES:
            raise InvalidRequestError(
                f"{key} is not a quota; the quotas are {', '.join(QUOTA_TYPES)}"
            )
        if value is not None:
            QUOTA_TYPES[key].check(value)
    async with context.connections.client() as client:
        await quotas.alter(client, body.entity, body.values)
    return await list_quotas(context, request)


def _acl_to_change(body: NewAcl) -> model.Acl:
    """Parse an ACL; combinations that mean nothing are rejected."""
    kind = _parse_enum(ResourceType, body.resource_type, lambda each: each in _RESOURCES)
    operation = _parse_enum(Operation, body.operation, lambda each: each > Operation.ANY)
    if not is_supported(kind, operation):
        raise InvalidRequestError(
            f"{display_name(operation)} is not an operation on {display_name(kind)}"
        )
    principal_type, _, name = body.principal.partition(":")
    if principal_type not in {"User", "Group"} or not name:
        raise InvalidRequestError(f"{body.principal!r} is not a principal, such as User:alice")
    if not body.resource_name or not body.host:
        raise InvalidRequestError("an ACL needs a resource name and a host; * is any host")
    is_cluster = kind is ResourceType.CLUSTER
    return model.Acl(
        kind,
        PatternType.LITERAL
        if is_cluster
        else _parse_enum(PatternType, body.pattern_type, lambda each: each in _PATTERNS),
        CLUSTER_NAME if is_cluster else body.resource_name,
        body.principal,
        body.host,
        operation,
        _parse_enum(Permission, body.permission, lambda each: each > Permission.ANY),
    )


def _parse_enum(kind: type[AclEnum], text: str, is_allowed: Callable[[AclEnum], bool]) -> AclEnum:
    known = {each.name: each for each in kind if is_allowed(each)}
    if text.upper() not in known:
        raise InvalidRequestError(f"{text!r} is unknown; the values are {', '.join(known)}")
    return known[text.upper()]


def _mechanisms(labels: Sequence[str]) -> list[ScramMechanism]:
    known = {each.label: each for each in ScramMechanism}
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise InvalidRequestError(f"{unknown[0]!r} is unknown; the values are {', '.join(known)}")
    return sorted({known[label] for label in labels})


def _password(text: str) -> users.Password:
    if not text:
        raise InvalidRequestError("a password must have at least one character")
    return users.Password(text=text, iterations=ITERATIONS_DEFAULT, random=SystemRandom())


async def _check_exists(client: Client, name: str) -> None:
    if not await users.mechanisms_of(client, name):
        raise ResourceNotFoundError(f"there is no user {name}")


def _user(name: str, mechanisms: Sequence[ScramMechanism]) -> User:
    return User(name=name, mechanisms=[each.label for each in mechanisms])


def _check_entity(entity: dict[str, str | None]) -> None:
    if not entity or not entity.keys() <= _ENTITIES:
        raise InvalidRequestError("an entity must be a user, a client-id, both, or an ip")
    if "ip" in entity and len(entity) > 1:
        raise InvalidRequestError("an ip cannot be combined with a user or client-id")


def _bounded(items: list[Item]) -> tuple[list[Item], str | None]:
    if len(items) <= ITEMS_MAX:
        return items, None
    return items[:ITEMS_MAX], f"only {ITEMS_MAX:,} of {len(items):,} are shown"


def _shown_problem(error: BrokerResponseError) -> str:
    """The message of an error that the page shows; raises all others."""
    if error.error_code not in _SHOWN_ERRORS:
        raise error
    return str(error)


ROUTES: Final = (
    Route("GET", "/access/options", form_options, response=AccessOptions),
    Route("GET", "/acls", list_acls, response=Acls),
    Route("POST", "/acls", add_acl, body=NewAcl, response=Acl),
    Route("DELETE", "/acls", remove_acl, body=NewAcl),
    Route("GET", "/users", list_users, response=Users),
    Route("POST", "/users", create_user, body=NewUser, response=User),
    Route("PUT", "/users/{name:path}", change_password, body=NewPassword, response=User),
    Route("DELETE", "/users/{name:path}", delete_user),
    Route("GET", "/quotas", list_quotas, response=Quotas),
    Route("PUT", "/quotas", set_quota, body=SetQuota, response=Quotas),
)
