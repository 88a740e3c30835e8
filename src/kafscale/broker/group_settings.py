"""What the settings of a broker mean for its consumer groups."""

from kafscale.broker.group_coordinator.coordinator import OffsetRetention
from kafscale.config import Config
from kafscale.groups.config import GroupSettings
from kafscale.text.units import MINUTE_MS


def group_settings(config: Config) -> GroupSettings:
    group = config.group
    return GroupSettings(
        initial_rebalance_delay_ms=group.initial_rebalance_delay_ms,
        session_timeout_ms_min=group.session_timeout_ms_min,
        session_timeout_ms_max=group.session_timeout_ms_max,
        size_max=group.size_max,
        consumer_session_timeout_ms=group.consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=group.consumer_heartbeat_interval_ms,
        consumer_size_max=group.consumer_size_max,
        consumer_assignors=group.consumer_assignors,
        upgrades=group.consumer_migration_policy in {"bidirectional", "upgrade"},
        downgrades=group.consumer_migration_policy in {"bidirectional", "downgrade"},
    )


def offset_retention(config: Config) -> OffsetRetention:
    offsets = config.offsets
    return OffsetRetention(
        retention_ms=offsets.retention_minutes * MINUTE_MS,
        check_interval_ms=offsets.retention_check_interval_ms,
    )
