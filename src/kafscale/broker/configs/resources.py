"""The resources that have configs: topics, groups, brokers, broker loggers and client metrics.

Invariants: `validate_only` performs the same checks as a real change. Topic and group configs are
authorized on the topic or group, all others on the cluster. A group need not exist. The configs of
brokers are requested from the broker of that id, or from any for those of all brokers; the levels
of its loggers are lost when it stops, as in Kafka.

The modules beside this one define the configs of each kind of resource.
"""

import asyncio
import enum
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol, TypeVar

from kafscale.broker.configs.changes import Change, ConfigRules
from kafscale.broker.configs.client_metrics import SubscriptionRules
from kafscale.broker.configs.dynamic_configs import BrokerRules
from kafscale.broker.configs.group_configs import GroupRules
from kafscale.broker.configs.logger_configs import LoggerRules
from kafscale.broker.configs.topic_configs import TopicRules
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.broker.shared import topic_admission
from kafscale.errors import InvalidRequestError, InvalidTopicError, KafscaleError, UnknownTopicError
from kafscale.metadata.access import model as acl_model
from kafscale.metadata.configs.model import ConfigEntity, EntityKind
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics import names
from kafscale.observability import logging


class NamedResource(Protocol):
    """The fields that identify a resource in the messages of several APIs."""

    resource_type: int
    resource_name: str


Resource = TypeVar("Resource", bound=NamedResource)


class ResourceType(enum.IntEnum):
    """Kafka's numbers of config resource types."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_ACL_TYPES: Final[dict[int, acl_model.ResourceType]] = {
    ResourceType.TOPIC: acl_model.ResourceType.TOPIC,
    ResourceType.GROUP: acl_model.ResourceType.GROUP,
}
"""The resources whose configs are authorized on the resource itself."""


def require(
    context: RequestContext, operation: acl_model.Operation, resource: NamedResource
) -> None:
    """Raise unless the client is authorized for an operation on the configs of a resource."""
    acl_type = _ACL_TYPES.get(resource.resource_type)
    if acl_type is None:
        context.require(operation, acl_model.ResourceType.CLUSTER, acl_model.CLUSTER_NAME)
    else:
        context.require(operation, acl_type, resource.resource_name)


def find_topic(broker: Services, name: str) -> Topic:
    """The topic of this name; raises if there is none."""
    topic = broker.topic_store.find(name)
    if topic is None:
        names.check(name)
        raise unknown_topic(name)
    return topic


def unknown_topic(name: str) -> UnknownTopicError:
    return UnknownTopicError(f"The topic '{name}' does not exist.")


def check_not_internal(broker: Services, name: str) -> None:
    """Raise if a change of an internal topic is requested."""
    if broker.topic_store.is_internal(name):
        raise InvalidTopicError(f"Topic '{name}' is internal and cannot be changed.")


def check_node_id(broker: Services, name: str, unexpected: str, kind: str = "Node") -> None:
    """Raise unless the name is the id of this broker; `unexpected` has both ids."""
    try:
        node_id = int(name)
    except ValueError:
        raise InvalidRequestError(f"{kind} id must be an integer, but it is: {name}") from None
    if node_id != broker.node_id:
        raise InvalidRequestError(unexpected.format(broker.node_id, name))


async def alter(
    context: RequestContext,
    resources: Sequence[Resource],
    change_for: Callable[[Resource], Change],
    *,
    validate_only: bool,
    kinds: Collection[int] = tuple(ResourceType),
) -> list[KafscaleError | None]:
    """Alter the configs of each resource; returns an error for each that was not changed."""
    broker = context.broker
    counts = Counter((each.resource_type, each.resource_name) for each in resources)

    async def alter_one(resource: Resource) -> KafscaleError | None:
        try:
            if counts[resource.resource_type, resource.resource_name] > 1:
                raise InvalidRequestError("Each resource must appear at most once.")
            require(context, acl_model.Operation.ALTER_CONFIGS, resource)
            if resource.resource_type not in kinds:
                raise InvalidRequestError(f"Unknown resource type {resource.resource_type}")
            await _alter(broker, resource, change_for(resource), validate_only=validate_only)
        except KafscaleError as error:
            return error
        if not validate_only:
            broker.audit.changed(
                context,
                "configs changed",
                resource_type=ResourceType(resource.resource_type).name.lower(),
                resource=resource.resource_name,
            )
        return None

    return await asyncio.gather(*map(alter_one, resources))


async def _alter(
    broker: Services, resource: NamedResource, change: Change, *, validate_only: bool
) -> None:
    topic_admission.check_admin_allowed(broker)
    name = resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            await _alter_topic(broker, name, change, validate_only=validate_only)
        case ResourceType.GROUP:
            entity = ConfigEntity(EntityKind.GROUP, name)
            rules: ConfigRules = GroupRules(name, broker.config)
            await _alter_entity(broker, entity, change, rules, validate_only=validate_only)
        case ResourceType.BROKER:
            if name:
                check_node_id(broker, name, "Unexpected broker id, expected {}, but received {}")
            entity = ConfigEntity(EntityKind.BROKER, name)
            rules = BrokerRules(broker.settings.static)
            await _alter_entity(broker, entity, change, rules, validate_only=validate_only)
        case ResourceType.CLIENT_METRICS:
            entity = ConfigEntity(EntityKind.CLIENT_METRICS, name)
            rules = SubscriptionRules(name)
            await _alter_entity(broker, entity, change, rules, validate_only=validate_only)
        case ResourceType.BROKER_LOGGER:
            check_node_id(broker, name, "Unexpected node id. Expected {}, but received {}")
            levels = change(logging.levels(), LoggerRules())
            if not validate_only:
                logging.set_levels(levels)
        case other:
            raise InvalidRequestError(f"Unknown resource type {other}")


async def _alter_topic(broker: Services, name: str, change: Change, *, validate_only: bool) -> None:
    if not name:
        raise InvalidRequestError("Default topic resources are not allowed.")
    names.check(name)
    check_not_internal(broker, name)
    rules = TopicRules(broker.topic_defaults)
    topic = broker.topic_store.get(name)
    # As in Kafka, an invalid change is refused before a topic that does not exist.
    change(topic.configs if topic else {}, rules)
    if topic is None:
        raise unknown_topic(name)
    if not validate_only:
        await broker.topic_store.set_configs(name, lambda current: change(current, rules))


async def _alter_entity(
    broker: Services,
    entity: ConfigEntity,
    change: Change,
    rules: ConfigRules,
    *,
    validate_only: bool,
) -> None:
    """Change the dynamic configs of a group, a broker or a subscription."""
    if validate_only:
        change(broker.config_store.get(entity), rules)
    else:
        await broker.config_store.alter(entity, lambda current: change(current, rules))
