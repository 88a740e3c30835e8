"""A broker that authorizes, and somebody who may do anything but what a test takes away.

Whoever a test does not name is a super user, so that things can be prepared as anywhere else.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from kafscale.broker.requests.context import ClientInfo
from kafscale.broker.security.permissions import Grant, Requirement
from kafscale.config import Config
from kafscale.config.sections.s3 import S3
from kafscale.config.sections.security import Authorization
from kafscale.metadata.access.model import (
    ANY_HOST,
    ANY_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from kafscale.metadata.schema.model import Topic
from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.error_codes import ErrorCode
from kafscale.security.principal import ANONYMOUS_NAME, Principal
from unit.broker.handlers.serving import Served

AUTHORIZED = Config(
    s3=S3(use_memory=True), authorization=Authorization(enabled=True, super_users=(ANONYMOUS_NAME,))
)
ALICE = "User:alice"
TOPIC = "orders"
MISSING = "missing"
DENIALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
RESOURCE_TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)


def client(principal: str = ALICE) -> ClientInfo:
    return ClientInfo(
        "10.0.0.2", 50_000, local_host="10.0.0.9", local_port=9092, identity=Principal(principal)
    )


def rule(
    resource_type: ResourceType,
    operation: Operation,
    name: str = ANY_NAME,
    *,
    permission: Permission = Permission.ALLOW,
    principal: str = ALICE,
) -> Acl:
    return Acl(resource_type, PatternType.LITERAL, name, principal, ANY_HOST, operation, permission)


def denial(grant: Grant) -> Acl:
    """Takes one operation away, whatever it would follow from."""
    return rule(grant.resource_type, grant.operation, permission=Permission.DENY)


async def allow_everything(broker: Served) -> None:
    await allow(broker, *(rule(each, Operation.ALL) for each in RESOURCE_TYPES))


async def allow(broker: Served, *acls: Acl) -> None:
    await broker.services.access_store.add_acls(acls)


async def deny(broker: Served, grants: Iterable[Grant]) -> None:
    """Take operations away, and give all others back."""
    rules = broker.services.access_store
    taken = {denial(grant) for grant in grants}
    await rules.remove_acls([acl for acl in rules.acls if acl.permission is Permission.DENY])
    await rules.add_acls(taken)


class Scene(NamedTuple):
    """What requests can name: there are the topic `orders` and the group `readers`."""

    topic: Topic


Ask = Callable[[Scene, int], Message]
"""Makes a request of a version."""


class Case(NamedTuple):
    """A request that shows that something is needed."""

    api: Api[Any, Any]
    resource_type: ResourceType
    operation: Operation
    ask: Ask
    told: Callable[[Any], Any]
    """The error code, where it belongs; where nothing is told, what is shown to others."""
    versions: range | None = None
    """In which versions it can be asked; None for all of them."""
    prepare: Callable[[Served], Awaitable[Any]] | None = None
    label: str = ""
    """Tells apart cases of the same need."""

    @property
    def key(self) -> tuple[str, Grant]:
        return self.api.name, Grant(self.resource_type, self.operation)

    @property
    def version_numbers(self) -> range:
        return self.api.versions if self.versions is None else self.versions

    def __str__(self) -> str:
        api, grant = self.key
        return f"{api}: {grant} {self.label}".strip().replace(" ", "-")

    def is_denied(self, need: Requirement, response: Any) -> bool:
        told = self.told(response)
        if need.is_filtered:
            return not told
        assert told == need.code or told not in DENIALS, told
        return told == need.code


def codes(told: Any) -> set[int]:
    """Every error code that stands in an answer."""
    if isinstance(told, list):
        return set().union(*map(codes, told))
    if not isinstance(told, Message):
        return set()
    fields = msgspec.structs.asdict(told)
    own_code = {fields["error_code"]} if "error_code" in fields else set()
    return own_code.union(*map(codes, fields.values()))


def first_partition(response: Any) -> int:
    [topic] = response.topics
    [partition] = topic.partitions
    return partition.error_code


def own(response: Any) -> int:
    return response.error_code


def first_topic(response: Any) -> int:
    [topic] = response.topics
    return topic.error_code


def first_group(response: Any) -> int:
    [group] = response.groups
    return group.error_code


def first_resource(response: Any) -> int:
    [resource] = response.resources
    return resource.error_code


async def scene(broker: Served) -> Scene:
    topic = await broker.topic(TOPIC)
    await broker.write(TOPIC, 1)
    return Scene(topic)
