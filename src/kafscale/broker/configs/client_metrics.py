"""The configs of subscriptions of client metrics (KIP-714), as Kafka's tools see them.

As in Kafka, a subscription exists as long as it has a config, every name can be described, and the
lists are set as a whole. `telemetry.subscription` validates values.
"""

from collections.abc import Collection, Mapping
from typing import Final

from kafscale.broker.configs.changes import not_a_list
from kafscale.broker.services import Services
from kafscale.broker.telemetry.subscription import DEFAULTS, INTERVAL, MATCH, METRICS, check
from kafscale.broker.telemetry.subscriptions import entity
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.protocol.messages.describe_configs import ConfigSynonym, DescribedConfig

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


class SubscriptionRules:
    """`ConfigRules` for a subscription; as in Kafka, its lists are set as a whole."""

    def __init__(self, name: str) -> None:
        self._name = name

    def inherited_list(self, _name: str) -> None:
        return None

    def not_a_list(self, name: str, operation: str) -> KafscaleError:
        return not_a_list(name, operation)

    def checked(self, configs: Mapping[str, str], _named: Collection[str]) -> dict[str, str]:
        check(self._name, configs)
        return dict(configs)


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
