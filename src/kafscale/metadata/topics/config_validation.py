"""What may be stored as the configs of a topic, and what holds where it says nothing.

The law: what is stored is what the topic's own configs say, checked and nothing more; the broker's
settings and Kafka's defaults are filled in when a value is asked for, so that changing them reaches
every topic that does not say otherwise. Whoever stores configs, for a client or for a resource of
Kubernetes, asks here first, and a refusal has the same words for both. The rows, and which of them
take effect, are in `topic_config_table`.
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
    """What holds for topics that do not say otherwise."""

    values: Mapping[str, str]
    """Every topic config by its name."""
    static: frozenset[str] = frozenset()
    """Which of them the broker's settings say, rather than nobody."""

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
    """What somebody wants to be stored, as it is stored; refused as a whole if any is wrong."""
    absent = sorted(name for name, value in configs.items() if value is None)
    if absent:
        raise InvalidConfigError(f"Null value not supported for topic configs: {','.join(absent)}")
    return {
        name: validate_value(name, value, defaults)
        for name, value in configs.items()
        if value is not None
    }


def validate_value(name: str, text: str, defaults: TopicDefaults) -> str:
    """A single value as it is stored."""
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
    """The row of a config that there is."""
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
