"""The configs of a topic, with their defaults and what they mean: as a person wants to change them.

The law: a default is what the topic would obey if it set nothing, be it Kafka's or the brokers';
the value of what is sensitive is told by nobody.
"""

from typing import Any

from kafscale.client.client import Client
from kafscale.client.errors import check
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribedConfig,
    ResourceToDescribe,
)

Data = dict[str, Any]

TOPIC_RESOURCE = 2


async def describe(client: Client, name: str) -> list[Data]:
    """Every config that a topic may have, by name."""
    connection = await client.any_broker()
    request = DescribeConfigsRequest(
        resources=[ResourceToDescribe(TOPIC_RESOURCE, name, None)],
        include_synonyms=True,
        include_documentation=True,
    )
    response = await connection.ask(DESCRIBE_CONFIGS, request)
    (resource,) = response.resources
    check(f"topic {name}", resource.error_code, resource.error_message)
    return sorted(map(_config, resource.configs), key=lambda config: str(config["name"]))


def _config(config: DescribedConfig) -> Data:
    inherited = (
        each.value for each in config.synonyms if each.source != ConfigSource.TOPIC
    )  # Those that win come first.
    return {
        "name": config.name,
        "value": None if config.is_sensitive else config.value,
        "default": None if config.is_sensitive else next(inherited, None),
        "isSet": config.source == ConfigSource.TOPIC,
        "readOnly": config.read_only,
        "sensitive": config.is_sensitive,
        "type": _type_in_words(config.type),
        "documentation": config.documentation or None,
    }


def _type_in_words(number: int) -> str:
    """A type as forms name it.

    >>> _type_in_words(5), _type_in_words(77)
    ('long', 'unknown')
    """
    known = number in set(ConfigType)
    return (ConfigType(number) if known else ConfigType.UNKNOWN).name.lower()
