"""Validates topic configs, and resolves configs that a topic does not set.

Only explicit configs of a topic are stored. Broker settings and Kafka's defaults are applied when a
value is read, so that changing them affects every topic that does not override them. All writers of
configs, clients and Kubernetes resources alike, validate them here. `config_defs` defines the
configs and their effects.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Self

from kafscale.config import Config
from kafscale.config.model import DEFAULT
from kafscale.errors import InvalidConfigError
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS
from kafscale.metadata.topics.config_types import ConfigSource, InvalidValueError, ValueType

COMPACT: Final = "compact"
DELETE: Final = "delete"


Layer = tuple[ConfigSource, Mapping[str, str]]
"""Values of topic configs, by name, with their source."""


class TopicDefaults:
    """The values of configs that a topic does not set; they change with the broker's configs."""

    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        """`static` has those of the broker's settings."""
        kafkas = {name: row.default for name, row in TOPIC_CONFIGS.items()}
        self._static: tuple[Layer, ...] = (
            (ConfigSource.STATIC_BROKER, static or {}),
            (ConfigSource.DEFAULT, kafkas),
        )
        self.layers: tuple[Layer, ...] = ()
        """All values, in order of precedence."""
        self.values: Mapping[str, str] = {}
        """Every topic config by name."""
        self.set_dynamic(())

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
            {
                name: value
                for name, (path, value) in settings.items()
                if config.origin(path) != DEFAULT or value != TOPIC_CONFIGS[name].default
            }
        )

    def set_dynamic(self, layers: Iterable[Layer]) -> None:
        """Set the values of the brokers' dynamic configs, in order of precedence."""
        self.layers = (*layers, *self._static)
        self.values = {
            name: value for _, values in reversed(self.layers) for name, value in values.items()
        }


def validate(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Return configs as they are stored; raises `InvalidConfigError` if any is invalid."""
    nulls = sorted(name for name, value in configs.items() if value is None)
    if nulls:
        raise InvalidConfigError(f"Null value not supported for topic configs: {','.join(nulls)}")
    stored = {
        name: validate_value(name, value) for name, value in configs.items() if value is not None
    }
    check_together(stored)
    return stored


def validate_value(name: str, text: str) -> str:
    """Return one value as it is stored."""
    row = TOPIC_CONFIGS.get(name)
    if row is None:
        raise InvalidConfigError(f"Unknown topic config name: {name}")
    return parse_value(name, row.type, text)


def parse_value(name: str, value_type: ValueType, text: str) -> str:
    """Parse a value; raises `InvalidConfigError` in the words of Kafka."""
    try:
        return value_type.parse(text)
    except InvalidValueError as error:
        raise InvalidConfigError(
            f"Invalid value {error.value} for configuration {name}: {error}"
        ) from None


def check_together(configs: Mapping[str, str]) -> None:
    """Raise if the configs of a topic contradict each other, or Kafka's without tiered storage."""
    if configs.get("remote.storage.enable") == "true":
        raise InvalidConfigError(
            "Tiered Storage functionality is disabled in the broker."
            " Topic cannot be configured with remote log storage."
        )
    lag_ms = configs.get("min.compaction.lag.ms")
    lag_ms_max = configs.get("max.compaction.lag.ms")
    if lag_ms is not None and lag_ms_max is not None and int(lag_ms) > int(lag_ms_max):
        raise InvalidConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({lag_ms}) >"
            f" max.compaction.lag.ms ({lag_ms_max})"
        )
