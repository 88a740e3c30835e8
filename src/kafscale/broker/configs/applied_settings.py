"""Applies changes of the settings to components that have copies of them.

Handlers read the settings at each use. Components that were built with a part of them get the new
part here: logs their topic configs, the coordinator its limits and the configs of single groups.
"""

from functools import partial

from kafscale.broker.component_settings import group_settings, offset_settings
from kafscale.broker.configs import group_configs
from kafscale.broker.configs.topic_configs import resolve
from kafscale.broker.services import Services
from kafscale.errors import InvalidConfigError
from kafscale.groups.group import GroupSettings
from kafscale.metadata.configs.model import ConfigEntity, EntityKind
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)


def apply_changes(services: Services) -> None:
    """Apply the current settings, and every change from now on."""
    _apply_to_groups(services)
    services.settings.subscribe(partial(_apply_to_groups, services))
    services.settings.subscribe(partial(_apply_to_logs, services))
    _apply_to_producers(services)
    services.settings.subscribe(partial(_apply_to_producers, services))

    def on_change(entity: ConfigEntity) -> None:
        if entity.kind is EntityKind.GROUP:
            services.groups.registry.configure_group(entity.name)

    services.config_store.subscribe(on_change)


def _apply_to_groups(services: Services) -> None:
    def overrides(group_id: str, settings: GroupSettings) -> GroupSettings:
        own = services.config_store.get(ConfigEntity(EntityKind.GROUP, group_id))
        return group_configs.overridden(own, settings)

    services.groups.offset_settings = offset_settings(services.config)
    services.groups.registry.configure(group_settings(services.config), overrides)


def _apply_to_producers(services: Services) -> None:
    expiration_ms = services.config.storage.producer_id_expiration_ms
    services.storage.retention.producer_expiration_ms = expiration_ms


def _apply_to_logs(services: Services) -> None:
    for topic in services.topic_store.topics.values():
        try:
            settings = resolve(topic.configs, services.topic_defaults)
        except InvalidConfigError as error:
            logger.error("topic configs invalid", topic=topic.name, reason=str(error))
        else:
            services.storage.logs.configure(topic.name, settings)
