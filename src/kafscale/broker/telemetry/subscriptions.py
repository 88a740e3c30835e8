"""`Subscriptions`: the subscriptions of client metrics, as the cluster's dynamic configs have them.

A subscription whose configs are invalid, because another program has written them, is logged and
left out.
"""

from collections.abc import Mapping
from types import MappingProxyType

from kafscale.broker.telemetry.subscription import Subscription, check
from kafscale.errors import KafscaleError
from kafscale.metadata.configs.model import ConfigEntity, EntityKind
from kafscale.metadata.configs.store import ConfigStore
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)


class Subscriptions:
    """All subscriptions of a cluster, kept current."""

    def __init__(self, config_store: ConfigStore) -> None:
        self._config_store = config_store
        self._by_name: dict[str, Subscription] = {}
        self.by_name: Mapping[str, Subscription] = MappingProxyType(self._by_name)
        self.version = 0
        """Grows with every change."""
        for name in config_store.names(EntityKind.CLIENT_METRICS):
            self._read(entity(name))
        config_store.subscribe(self._read)

    def _read(self, changed: ConfigEntity) -> None:
        if changed.kind is not EntityKind.CLIENT_METRICS:
            return
        name, configs = changed.name, self._config_store.get(changed)
        self.version += 1
        self._by_name.pop(name, None)
        if not configs:
            return
        try:
            check(name, configs)
        except KafscaleError as error:
            logger.error("subscription invalid", name=name, reason=str(error))
            return
        self._by_name[name] = Subscription.of(name, configs)


def entity(name: str) -> ConfigEntity:
    """The entity of a subscription in the store of configs."""
    return ConfigEntity(EntityKind.CLIENT_METRICS, name)
