"""A broker with authorization, and a client `alice` that is denied single operations.

Clients without a principal are super users, so that tests can prepare topics and groups.
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
from unit.broker.in_memory_broker import InMemoryBroker

ACLS_ENABLED = Config(
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
        "10.0.0.2", 50_000, local_host="10.0.0.9", local_port=9092, principal=Principal(principal)
    )


def acl(
    resource_type: ResourceType,
    operation: Operation,
    name: str = ANY_NAME,
    *,
    permission: Permission = Permission.ALLOW,
    principal: str = ALICE,
) -> Acl:
    return Acl(resource_type, PatternType.LITERAL, name, principal, ANY_HOST, operation, permission)


def deny_acl(grant: Grant) -> Acl:
    """An ACL that denies one operation."""
    return acl(grant.resource_type, grant.operation, permission=Permission.DENY)


async def allow_everything(broker: InMemoryBroker) -> None:
    await allow(broker, *(acl(each, Operation.ALL) for each in RESOURCE_TYPES))


async def allow(broker: InMemoryBroker, *acls: Acl) -> None:
    await broker.services.access_store.add_acls(acls)


async def deny(broker: InMemoryBroker, grants: Iterable[Grant]) -> None:
    """Deny these operations, and no others any more."""
    store = broker.services.access_store
    denials = {deny_acl(grant) for grant in grants}
    await store.remove_acls([each for each in store.acls if each.permission is Permission.DENY])
    await store.add_acls(denials)


class PreparedTopic(NamedTuple):
    """The topic `orders`, which requests name."""

    topic: Topic


BuildRequest = Callable[[PreparedTopic, int], Message]
"""Builds a request for a version."""


class Case(NamedTuple):
    """A request that requires an operation."""

    api: Api[Any, Any]
    resource_type: ResourceType
    operation: Operation
    request: BuildRequest
    outcome: Callable[[Any], Any]
    """Returns the error code of the response; for filtered resources, what it lists."""
    versions: range | None = None
    """The versions that can be tested; None for all of them."""
    prepare: Callable[[InMemoryBroker], Awaitable[Any]] | None = None
    label: str = ""
    """Distinguishes cases of the same requirement."""

    @property
    def key(self) -> tuple[str, Grant]:
        return self.api.name, Grant(self.resource_type, self.operation)

    @property
    def version_numbers(self) -> range:
        return self.api.versions if self.versions is None else self.versions

    def __str__(self) -> str:
        api, grant = self.key
        return f"{api}: {grant} {self.label}".strip().replace(" ", "-")

    def is_denied(self, requirement: Requirement, response: Any) -> bool:
        outcome = self.outcome(response)
        if requirement.is_filtered:
            return not outcome
        assert outcome == requirement.code or outcome not in DENIALS, outcome
        return outcome == requirement.code


def codes(value: Any) -> set[int]:
    """Every error code in a response."""
    if isinstance(value, list):
        return set().union(*map(codes, value))
    if not isinstance(value, Message):
        return set()
    fields = msgspec.structs.asdict(value)
    own_code = {fields["error_code"]} if "error_code" in fields else set()
    return own_code.union(*map(codes, fields.values()))


def first_partition(response: Any) -> int:
    [topic] = response.topics
    [partition] = topic.partitions
    return partition.error_code


def top_level_error(response: Any) -> int:
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


async def prepare_topic(broker: InMemoryBroker) -> PreparedTopic:
    topic = await broker.topic(TOPIC)
    await broker.write(TOPIC, 1)
    return PreparedTopic(topic)
