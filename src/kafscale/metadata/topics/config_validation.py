"""Validates topic configs, and resolves configs that a topic does not set.

Only explicit configs of a topic are stored. Broker settings and Kafka's defaults are applied when a
value is read, so that changing them affects every topic that does not override them. All writers of
configs, clients and Kubernetes resources alike, validate them here. `config_defs` defines the
configs and their effects.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from kafscale.config import Config
from kafscale.config.model import DEFAULT
from kafscale.errors import InvalidConfigError
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS, Effect, TopicConfig
from kafscale.metadata.topics.config_types import split_list

COMPACT: Final = "compact"
DELETE: Final = "delete"


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """The values of configs that a topic does not set."""

    values: Mapping[str, str]
    """Every topic config by name."""
    static: frozenset[str] = frozenset()
    """The configs whose default is set in the broker's settings."""

    @classmethod
    def from_config(cls, config: Config) -> Self:
        settings = {
            "compression.type": ("compression.type", config.compression.type),
            "index.interval.bytes": (
                "storage.indexIntervalBytes",
                str(config.storage.index_interval_bytes),
            ),
            "segment.bytes": ("storage.segmentBytes", str(config.storage.segment_bytes)),
        }
        return cls(
            {name: row.default for name, row in TOPIC_CONFIGS.items()}
            | {name: value for name, (_, value) in settings.items()},
            frozenset(n for n, (path, _) in settings.items() if config.origin(path) != DEFAULT),
        )


def validate(configs: Mapping[str, str | None], defaults: TopicDefaults) -> dict[str, str]:
    """Return configs as they are stored; raises `InvalidConfigError` if any is invalid."""
    nulls = sorted(name for name, value in configs.items() if value is None)
    if nulls:
        raise InvalidConfigError(f"Null value not supported for topic configs: {','.join(nulls)}")
    return {
        name: validate_value(name, value, defaults)
        for name, value in configs.items()
        if value is not None
    }


def validate_value(name: str, text: str, defaults: TopicDefaults) -> str:
    """Return one value as it is stored."""
    row = definition(name)
    try:
        value = row.type.parse(text)
        if name == "cleanup.policy":
            _check_policy(value)
        if row.effect is Effect.FIXED:
            _check_fixed(row, value, defaults.values[name])
    except ValueError as error:
        raise InvalidConfigError(
            f"Invalid value {text} for configuration {name}: {error}"
        ) from None
    return value


def definition(name: str) -> TopicConfig:
    """The definition of a config; raises `InvalidConfigError` for an unknown name."""
    row = TOPIC_CONFIGS.get(name)
    if row is None:
        raise InvalidConfigError(f"Unknown topic config name: {name}")
    return row


def _check_policy(value: str) -> None:
    policies = set(split_list(value))
    if not policies or policies - {COMPACT, DELETE}:
        raise ValueError("String must be one of: compact, delete")


def _check_fixed(row: TopicConfig, value: str, only: str) -> None:
    if value != only:
        raise ValueError(f"Value must be {only!r}. {row.documentation}")
