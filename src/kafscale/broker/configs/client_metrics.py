"""The configs of subscriptions of client metrics (KIP-714), as Kafka's tools see them.

As in Kafka, a subscription exists as long as it has a config, every name can be described, and the
lists are set as a whole. `telemetry.subscription` validates values.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kafscale.broker.services import Services
from kafscale.broker.telemetry.subscription import DEFAULTS, INTERVAL, MATCH, METRICS, check
from kafscale.broker.telemetry.subscriptions import entity
from kafscale.errors import InvalidConfigError, InvalidRequestError
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.protocol.messages.alter_configs import ResourceToAlter as ReplacedResource
from kafscale.protocol.messages.describe_configs import ConfigSynonym, DescribedConfig
from kafscale.protocol.messages.incremental_alter_configs import ConfigToAlter
from kafscale.protocol.messages.incremental_alter_configs import ResourceToAlter as AlteredResource

Configs = Mapping[str, str]

SET, DELETE, APPEND, SUBTRACT = range(4)

_LIST_OPERATIONS: Final = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
_TYPES: Final = {INTERVAL: ConfigType.INT, MATCH: ConfigType.LIST, METRICS: ConfigType.LIST}
_DOCUMENTATION: Final = {
    INTERVAL: "How often clients push metrics, in milliseconds.",
    MATCH: "The clients that push: attribute=regular expression, separated by commas.",
    METRICS: "The prefixes of the metrics that clients push; * for every metric.",
}


def describe(broker: Services, name: str) -> list[DescribedConfig]:
    """All configs of a subscription, with their defaults."""
    if not name:
        raise InvalidRequestError("Client metrics subscription name must not be empty")
    explicit = broker.config_store.get(entity(name))
    return [_described(config, explicit.get(config)) for config in sorted(DEFAULTS)]


async def alter(
    broker: Services, resource: ReplacedResource | AlteredResource, *, validate_only: bool
) -> None:
    """Change the configs of a subscription; raises for invalid ones."""
    name = resource.resource_name
    names = [config.name for config in resource.configs]
    if len(names) > len(set(names)):
        raise InvalidRequestError("Error due to duplicate config keys")

    def changed(current: Configs) -> Configs:
        after = (
            _altered(current, resource.configs)
            if isinstance(resource, AlteredResource)
            else {config.name: _not_null(config.name, config.value) for config in resource.configs}
        )
        check(name, after)
        return after

    if validate_only:
        changed(broker.config_store.get(entity(name)))
    else:
        await broker.config_store.alter(entity(name), changed)


def _altered(current: Configs, requested: Sequence[ConfigToAlter]) -> Configs:
    after = dict(current)
    for config in requested:
        if config.operation == DELETE:
            after.pop(config.name, None)
        elif config.operation == SET:
            after[config.name] = _not_null(config.name, config.value)
        elif operation := _LIST_OPERATIONS.get(config.operation):
            raise InvalidConfigError(
                f"Can't {operation} to key {config.name} because its type is not LIST."
            )
        else:
            raise InvalidRequestError(f"Unknown operations type {config.operation}")
    return after


def _not_null(name: str, value: str | None) -> str:
    if value is None:
        raise InvalidRequestError(f"Null value not supported for : {name}")
    return value


def _described(config: str, explicit: str | None) -> DescribedConfig:
    value = DEFAULTS[config] if explicit is None else explicit
    source = ConfigSource.DEFAULT if explicit is None else ConfigSource.CLIENT_METRICS
    return DescribedConfig(
        name=config,
        value=value,
        is_default=explicit is None,
        source=source,
        synonyms=[] if explicit is None else [ConfigSynonym(config, value, source)],
        type=_TYPES[config],
        documentation=_DOCUMENTATION[config],
    )
