"""The configs of a topic, with defaults and documentation.

A default is the value that would apply if the topic set nothing, whether it comes from Kafka or
from the brokers. Values of sensitive configs are never returned.
"""

import msgspec

from kafscale.client.client import Client
from kafscale.client.errors import check
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribedConfig,
    ResourceToDescribe,
)

TOPIC_RESOURCE = 2


class TopicConfig(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    value: str | None
    default: str | None
    is_set: bool
    """True if it is set for this topic."""
    read_only: bool
    sensitive: bool
    type: str
    documentation: str | None


async def describe(client: Client, name: str) -> list[TopicConfig]:
    """All configs that a topic can have, by name."""
    connection = await client.any_broker()
    request = DescribeConfigsRequest(
        resources=[ResourceToDescribe(TOPIC_RESOURCE, name, None)],
        include_synonyms=True,
        include_documentation=True,
    )
    response = await connection.ask(DESCRIBE_CONFIGS, request)
    (resource,) = response.resources
    check(f"topic {name}", resource.error_code, resource.error_message)
    return sorted(map(_topic_config, resource.configs), key=lambda config: config.name)


def _topic_config(config: DescribedConfig) -> TopicConfig:
    # Synonyms are in order of precedence.
    inherited = (each.value for each in config.synonyms if each.source != ConfigSource.TOPIC)
    return TopicConfig(
        name=config.name,
        value=None if config.is_sensitive else config.value,
        default=None if config.is_sensitive else next(inherited, None),
        is_set=config.source == ConfigSource.TOPIC,
        read_only=config.read_only,
        sensitive=config.is_sensitive,
        type=_type_name(config.type),
        documentation=config.documentation or None,
    )


def _type_name(number: int) -> str:
    """The name of a config type.

    >>> _type_name(5), _type_name(77)
    ('long', 'unknown')
    """
    known = number in set(ConfigType)
    return (ConfigType(number) if known else ConfigType.UNKNOWN).name.lower()
