"""Limits of groups, named after Kafka's broker settings."""

import msgspec


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `group.*` settings; the defaults are Kafka's."""

    initial_rebalance_delay_ms: int = 3_000
    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    size_max: int = 2**31 - 1

    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_size_max: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The first one is used if members do not ask for another."""
    upgrades: bool = True
    """Whether a classic group may become a consumer group while it has members."""
    downgrades: bool = True
    """Whether a consumer group becomes a classic one when only classic members are left."""
