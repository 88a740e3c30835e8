"""What has configs that clients can name: topics, brokers, and the loggers of brokers.

The law: only topics can be changed, and what is checked for a topic is checked whether or not the
change is made. Brokers are configured by their settings, which take a restart. How configs read,
and which of them there are, is said in `topic_configs` and `broker_configs`.
"""

import enum
from collections.abc import Callable, Mapping

from kafscale.broker import admin_rules
from kafscale.broker.services import Services
from kafscale.errors import InvalidConfigError, InvalidRequestError, UnknownTopicError
from kafscale.metadata import topic_names
from kafscale.metadata.model import Topic


class ResourceType(enum.IntEnum):
    """What a config belongs to, as Kafka numbers it."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def find_topic(broker: Services, name: str) -> Topic:
    """The topic of this name, or the error that says why there is none."""
    topic_names.check(name)
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
    resource_type: int,
    name: str,
    change: Callable[[Mapping[str, str]], Mapping[str, str]],
    *,
    validate_only: bool,
) -> None:
    """Change what is set for a resource; `change` makes the new configs of the present ones."""
    admin_rules.check_allowed(broker)
    if resource_type in {ResourceType.BROKER, ResourceType.BROKER_LOGGER}:
        raise InvalidConfigError(
            "The configs of brokers are read-only: change the broker's settings and restart it."
        )
    if resource_type != ResourceType.TOPIC:
        raise InvalidRequestError(f"Unsupported resource type: {resource_type}")
    topic = find_topic(broker, name)
    if validate_only:
        change(topic.configs)
    else:
        await broker.catalog.set_configs(name, change)
