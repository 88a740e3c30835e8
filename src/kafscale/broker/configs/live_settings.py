"""`LiveSettings`: the settings of this broker, with the dynamic configs that apply to it.

Invariants: a config of this broker takes precedence over one of all brokers, and both over the
configuration file. Listeners are called after the settings have changed. A stored config that this
version does not know or cannot apply is ignored and logged; the broker runs without it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kafscale.broker.configs import dynamic_configs
from kafscale.config import Config
from kafscale.metadata.configs.model import ConfigEntity, EntityKind
from kafscale.metadata.configs.store import ConfigStore
from kafscale.metadata.topics.config_types import ConfigSource
from kafscale.metadata.topics.config_validation import Layer, TopicDefaults
from kafscale.observability.logging import get_logger

ALL_BROKERS: Final = ConfigEntity(EntityKind.BROKER, "")

logger = get_logger(__name__)


class LiveSettings:
    """The current settings of a broker."""

    def __init__(self, static: Config, store: ConfigStore, broker_id: int) -> None:
        """The store must have been started."""
        self.static = static
        """As in the configuration file."""
        self.config = static
        self.topic_defaults = TopicDefaults.from_config(static)
        self._store = store
        self._entities = {
            ConfigEntity(EntityKind.BROKER, str(broker_id)): ConfigSource.DYNAMIC_BROKER,
            ALL_BROKERS: ConfigSource.DYNAMIC_DEFAULT_BROKER,
        }
        """In order of precedence."""
        self._listeners: list[Callable[[], None]] = []
        self._cluster_listeners: list[Callable[[], None]] = []
        self.layers: tuple[Layer, ...] = ()
        """The dynamic configs in order of precedence."""
        self._apply()
        store.subscribe(self._on_change)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change; it must not block."""
        self._listeners.append(listener)

    def subscribe_to_all(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change of the configs of any broker."""
        self._cluster_listeners.append(listener)

    def topic_defaults_of_all(self) -> list[TopicDefaults]:
        """The defaults of topic configs on each broker whose own configs may differ."""
        default = (ConfigSource.DYNAMIC_DEFAULT_BROKER, self._valid(ALL_BROKERS))
        result = []
        for name in {"", *self._store.names(EntityKind.BROKER)}:
            own = self._valid(ConfigEntity(EntityKind.BROKER, name)) if name else {}
            defaults = TopicDefaults.from_config(self.static)
            layers = ((ConfigSource.DYNAMIC_BROKER, own), default)
            defaults.set_dynamic((source, _topic_defaults(values)) for source, values in layers)
            result.append(defaults)
        return result

    def _on_change(self, entity: ConfigEntity) -> None:
        if entity.kind is not EntityKind.BROKER:
            return
        for listener in self._cluster_listeners:
            listener()
        if entity not in self._entities:
            return
        self._apply()
        logger.info("broker configs changed", configs=self._effective())
        for listener in self._listeners:
            listener()

    def _apply(self) -> None:
        self.layers = tuple(
            (source, self._valid(entity)) for entity, source in self._entities.items()
        )
        configs = self._effective()
        if problems := dynamic_configs.contradictions(self.static, configs):
            logger.error("broker configs ignored", reason="; ".join(problems))
            self.config = self.static
        else:
            self.config = dynamic_configs.overlaid(self.static, configs)
        self.topic_defaults.set_dynamic(
            (source, _topic_defaults(values)) for source, values in self.layers
        )

    def _valid(self, entity: ConfigEntity) -> Mapping[str, str]:
        stored = self._store.get(entity)
        valid = dynamic_configs.valid(stored)
        if ignored := sorted(stored.keys() - valid.keys()):
            logger.error("broker configs ignored", broker=entity.name, names=ignored)
        return valid

    def _effective(self) -> dict[str, str]:
        return {
            name: value for _, values in reversed(self.layers) for name, value in values.items()
        }


def _topic_defaults(configs: Mapping[str, str]) -> dict[str, str]:
    """The defaults of topic configs among those of a broker, by the names of the topic configs."""
    return {
        row.name: configs[name]
        for name, row in dynamic_configs.TOPIC_DEFAULTS.items()
        if name in configs
    }
