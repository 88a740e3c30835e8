"""What has configs that clients can name: topics, brokers, and the loggers of brokers.

The law: only topics can be changed, and what is checked for a topic is checked whether or not the
change is made. Brokers are configured by their settings, which take a restart. How configs read,
and which of them there are, is said in `topic_configs` and `broker_configs`.
"""

import asyncio
import enum
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from kafscale.broker.services import Services
from kafscale.broker.shared import topic_admission
from kafscale.errors import (
    InvalidConfigError,
    InvalidRequestError,
    KafscaleError,
    UnknownTopicError,
)
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics import names

Change = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Makes the new configs of a resource of the present ones."""


class NamedResource(Protocol):
    """What the messages of several APIs name alike."""

    resource_type: int
    resource_name: str


Resource = TypeVar("Resource", bound=NamedResource)


class ResourceType(enum.IntEnum):
    """What a config belongs to, as Kafka numbers it."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def find_topic(broker: Services, name: str) -> Topic:
    """The topic of this name, or the error that says why there is none."""
    names.check(name)
    topic = broker.catalog.get(name)
    if topic is None:
        raise UnknownTopicError(f"The topic '{name}' does not exist.")
    return topic


def check_broker(broker: Services, name: str) -> None:
    """Refuse to speak for another broker than this one."""
    if name != str(broker.node_id):
        raise InvalidRequestError(
            f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}"
        )


async def alter(
    broker: Services,
    resources: Sequence[Resource],
    change_for: Callable[[Resource], Change],
    *,
    validate_only: bool,
) -> list[KafscaleError | None]:
    """Change what is set for each resource; why not, for those that stay as they are."""
    named = Counter((each.resource_type, each.resource_name) for each in resources)

    async def outcome(resource: Resource) -> KafscaleError | None:
        try:
            if named[resource.resource_type, resource.resource_name] > 1:
                raise InvalidRequestError("Each resource must appear at most once.")
            await _alter(broker, resource, change_for(resource), validate_only=validate_only)
        except KafscaleError as error:
            return error
        return None

    return await asyncio.gather(*map(outcome, resources))


async def _alter(
    broker: Services, resource: NamedResource, change: Change, *, validate_only: bool
) -> None:
    topic_admission.check_allowed(broker)
    if resource.resource_type in {ResourceType.BROKER, ResourceType.BROKER_LOGGER}:
        raise InvalidConfigError(
            "The configs of brokers are read-only: change the broker's settings and restart it."
        )
    if resource.resource_type != ResourceType.TOPIC:
        raise InvalidRequestError(f"Unsupported resource type: {resource.resource_type}")
    topic = find_topic(broker, resource.resource_name)
    if validate_only:
        change(topic.configs)
    else:
        await broker.catalog.set_configs(topic.name, change)
