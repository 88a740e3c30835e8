"""Who may do what, who may log in and how much each may use, over `admin.acls`, `users`, `quotas`.

Lists are bounded; where brokers do not tell, the reason stands beside an empty list, so that a page
has something to show. Passwords are salted here and are in no answer.
"""

from collections.abc import Callable, Sequence
from random import SystemRandom
from typing import Final, TypeVar

import msgspec

from kafscale.admin.security import acls, quotas, users
from kafscale.admin.security.acl_words import called, supported
from kafscale.client.client import Client
from kafscale.client.errors import AnsweredError
from kafscale.console.api.route import Call, Route
from kafscale.console.context import Room
from kafscale.console.schema.access import (
    AccessWords,
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
_UNTOLD: Final = frozenset({ErrorCode.SECURITY_DISABLED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})
"""Answers that are no failure of a page, but something for it to show."""

Item = TypeVar("Item")
Word = TypeVar("Word", ResourceType, Operation, PatternType, Permission)


async def words(_: Room, __: Call) -> AccessWords:
    return AccessWords(
        operations={
            kind.name: [each.name for each in Operation if each > 1 and supported(kind, each)]
            for kind in _RESOURCES
        },
        pattern_types=[each.name for each in _PATTERNS],
        mechanisms=[each.label for each in ScramMechanism],
        quota_keys=list(QUOTA_TYPES),
    )


async def list_acls(room: Room, _: Call) -> Acls:
    async with room.reach.client() as client:
        try:
            found = await acls.find(client, [AclFilter()])
        except AnsweredError as error:
            is_enabled = error.answer is not ErrorCode.SECURITY_DISABLED
            return Acls(is_enabled=is_enabled, items=[], problem=_told(error))
    items, problem = _bounded([_acl(each) for each in found])
    return Acls(is_enabled=True, items=items, problem=problem)


async def add_acl(room: Room, call: Call) -> Acl:
    rule = _rule(call.body)
    async with room.reach.client() as client:
        await acls.add(client, [rule])
    return _acl(rule)


async def remove_acl(room: Room, call: Call) -> None:
    async with room.reach.client() as client:
        await acls.remove(client, [_rule(call.body)])


async def list_users(room: Room, _: Call) -> Users:
    async with room.reach.client() as client:
        try:
            found = await users.list_all(client)
        except AnsweredError as error:
            return Users(items=[], problem=_told(error))
    shown = [
        User(name=each["user"], mechanisms=[way["mechanism"] for way in each["credentials"]])
        for each in found
    ]
    items, problem = _bounded(shown)
    return Users(items=items, problem=problem)


async def create_user(room: Room, call: Call) -> User:
    asked: NewUser = call.body
    if not asked.name:
        raise InvalidRequestError("a user needs a name")
    mechanisms = _mechanisms(asked.mechanisms) or list(ScramMechanism)
    async with room.reach.client() as client:
        if await users.mechanisms_of(client, asked.name):
            raise DuplicateResourceError(
                f"user {asked.name} exists; give them another password, or choose another name"
            )
        await users.create(client, asked.name, _password(asked.password), mechanisms)
    return _user(asked.name, mechanisms)


async def change_password(room: Room, call: Call) -> User:
    name, asked = call.path["name"], call.body
    async with room.reach.client() as client:
        await _known(client, name)
        changed = await users.change_password(client, name, _password(asked.password), ())
    return _user(name, changed)


async def delete_user(room: Room, call: Call) -> None:
    name = call.path["name"]
    async with room.reach.client() as client:
        await _known(client, name)
        await users.delete(client, [name], (), missing_ok=True)


async def list_quotas(room: Room, _: Call) -> Quotas:
    async with room.reach.client() as client:
        try:
            found = await quotas.describe(client, {})
        except AnsweredError as error:
            return Quotas(items=[], problem=_told(error))
    items, problem = _bounded(
        [Quota(entity=each["entity"], values=each["limits"]) for each in found]
    )
    return Quotas(items=items, problem=problem)


async def set_quota(room: Room, call: Call) -> Quotas:
    asked: SetQuota = call.body
    _check_entity(asked.entity)
    if not asked.values:
        raise InvalidRequestError("say what is limited, and to how much")
    for key, value in asked.values.items():
        if key not in QUOTA_TYPES:
            raise InvalidRequestError(f"{key} is no quota; there are {', '.join(QUOTA_TYPES)}")
        if value is not None:
            QUOTA_TYPES[key].check(value)
    async with room.reach.client() as client:
        await quotas.alter(client, asked.entity, asked.values)
    return await list_quotas(room, call)


def _acl(rule: model.Acl) -> Acl:
    return msgspec.convert(acls.data(rule), Acl)


def _rule(asked: NewAcl) -> model.Acl:
    """The rule that is meant; what can mean nothing is refused."""
    kind = _word(ResourceType, asked.resource_type, lambda each: each in _RESOURCES)
    operation = _word(Operation, asked.operation, lambda each: each > Operation.ANY)
    if not supported(kind, operation):
        raise InvalidRequestError(f"{called(operation)} cannot be done to a {called(kind)}")
    principal_type, _, name = asked.principal.partition(":")
    if principal_type not in {"User", "Group"} or not name:
        raise InvalidRequestError(f"{asked.principal!r} is not a principal, such as User:alice")
    if not asked.resource_name or not asked.host:
        raise InvalidRequestError("say what the rule is about, and from which host: * is any")
    is_cluster = kind is ResourceType.CLUSTER
    return model.Acl(
        kind,
        PatternType.LITERAL
        if is_cluster
        else _word(PatternType, asked.pattern_type, lambda each: each in _PATTERNS),
        CLUSTER_NAME if is_cluster else asked.resource_name,
        asked.principal,
        asked.host,
        operation,
        _word(Permission, asked.permission, lambda each: each > Permission.ANY),
    )


def _word(kind: type[Word], text: str, may_be: Callable[[Word], bool]) -> Word:
    known = {each.name: each for each in kind if may_be(each)}
    if text.upper() not in known:
        raise InvalidRequestError(f"{text!r} is unknown here; there are {', '.join(known)}")
    return known[text.upper()]


def _mechanisms(labels: Sequence[str]) -> list[ScramMechanism]:
    known = {each.label: each for each in ScramMechanism}
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise InvalidRequestError(f"{unknown[0]!r} is unknown here; there are {', '.join(known)}")
    return sorted({known[label] for label in labels})


def _password(text: str) -> users.Password:
    if not text:
        raise InvalidRequestError("a password has at least one character")
    return users.Password(text=text, iterations=ITERATIONS_DEFAULT, random=SystemRandom())


async def _known(client: Client, name: str) -> None:
    if not await users.mechanisms_of(client, name):
        raise ResourceNotFoundError(f"there is no user {name}")


def _user(name: str, mechanisms: Sequence[ScramMechanism]) -> User:
    return User(name=name, mechanisms=[each.label for each in mechanisms])


def _check_entity(entity: dict[str, str | None]) -> None:
    if not entity or not entity.keys() <= _ENTITIES:
        raise InvalidRequestError("say who is meant: a user, a client-id, both, or an ip")
    if "ip" in entity and len(entity) > 1:
        raise InvalidRequestError("an ip goes with no user and no client-id")


def _bounded(items: list[Item]) -> tuple[list[Item], str | None]:
    if len(items) <= ITEMS_MAX:
        return items, None
    return items[:ITEMS_MAX], f"only {ITEMS_MAX:,} of {len(items):,} are shown here"


def _told(error: AnsweredError) -> str:
    """Why there is nothing to show, if that is no failure."""
    if error.answer not in _UNTOLD:
        raise error
    return str(error)


ROUTES: Final = (
    Route("GET", "/access/words", words, gives=AccessWords),
    Route("GET", "/acls", list_acls, gives=Acls),
    Route("POST", "/acls", add_acl, takes=NewAcl, gives=Acl),
    Route("DELETE", "/acls", remove_acl, takes=NewAcl),
    Route("GET", "/users", list_users, gives=Users),
    Route("POST", "/users", create_user, takes=NewUser, gives=User),
    Route("PUT", "/users/{name:path}", change_password, takes=NewPassword, gives=User),
    Route("DELETE", "/users/{name:path}", delete_user),
    Route("GET", "/quotas", list_quotas, gives=Quotas),
    Route("PUT", "/quotas", set_quota, takes=SetQuota, gives=Quotas),
)
