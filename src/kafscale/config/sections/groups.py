"""Settings of consumer groups: what members may ask for, and how long offsets are kept.

The law: a setting is called as Kafka's broker setting of the same meaning, and has its default. A
setting of Kafka's that would change nothing here does not exist.
"""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import Choice, Duration, Integer, Size, StringList, Text
from kafscale.text.units import HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS

_INT_MAX = 2**31 - 1
_SESSION_TIMEOUT = Duration(1, 24 * HOUR_MS)
_SIZE = Integer(1, _INT_MAX)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Consumer groups: the bounds within which they live, under the names of Kafka's own settings.

    Those that begin with `consumer` hold for groups of the newer protocol, KIP-848, whose members
    leave such things to the broker.
    """

    initial_rebalance_delay_ms: int = setting(3 * SECOND_MS, Duration(0, HOUR_MS))
    """How long the first rebalance of an empty group waits for further members, and again for each
    that comes meanwhile. In milliseconds; 3 seconds spare a group that is just being started
    several rebalances, 0 has the first member read at once."""

    session_timeout_ms_min: int = setting(
        6 * SECOND_MS, _SESSION_TIMEOUT, key="minSessionTimeoutMs"
    )
    """The shortest session that a member may ask for. In milliseconds; with less than 6 seconds a
    pause of a member or of the network becomes a rebalance."""

    session_timeout_ms_max: int = setting(
        30 * MINUTE_MS, _SESSION_TIMEOUT, key="maxSessionTimeoutMs"
    )
    """The longest session that a member may ask for. In milliseconds; 30 minutes give batch jobs
    time, and bound how long the partitions of a member that is gone stay unread."""

    size_max: int = setting(_INT_MAX, _SIZE, key="maxSize")
    """How many members a group may have; further ones are refused. 2147483647 is no bound, because
    nobody but you knows which size is a mistake."""

    coordinator_append_linger_ms: int = setting(5, Duration(0, SECOND_MS))
    """How long a change of a group or a committed offset waits for others, to be written together
    with them. In milliseconds; 5 are not felt by a consumer and spare the metadata store most of
    its writes. 0 waits for none."""

    consumer_session_timeout_ms: int = setting(45 * SECOND_MS, Duration(SECOND_MS, HOUR_MS))
    """How long a member may be silent before the group goes on without it. In milliseconds; 45
    seconds are nine heartbeats."""

    consumer_heartbeat_interval_ms: int = setting(5 * SECOND_MS, Duration(100, HOUR_MS))
    """How often members are told to show that they are alive, which is also when they learn of a
    new assignment. In milliseconds; 5 seconds keep a large group cheap, fewer settle it sooner."""

    consumer_size_max: int = setting(_INT_MAX, _SIZE, key="consumerMaxSize")
    """How many members such a group may have; further ones are refused. 2147483647 is no bound, as
    above."""

    consumer_assignors: tuple[str, ...] = setting(
        ("uniform", "range"), StringList(Text("uniform or range", "uniform|range"), required=True)
    )
    """Who may assign partitions to members; the first does where members ask for none. `uniform`
    comes first, because it balances best and moves least; `range` gives a member the same
    partitions of all topics."""

    consumer_migration_policy: str = setting(
        "bidirectional", Choice(("bidirectional", "upgrade", "downgrade", "disabled"))
    )
    """Which way a group may change its protocol while it has members: to the newer one (`upgrade`),
    back, or both. `bidirectional`, so that consumers can be moved one by one, and back again."""


@dataclass(frozen=True, kw_only=True)
class Offsets:
    """Committed offsets: what is kept, and for how long."""

    retention_minutes: int = setting(7 * 24 * 60, Integer(1, _INT_MAX))
    """How long offsets are kept once nobody in the group reads them. In minutes; 10080 are seven
    days, in which an application that was stopped can come back."""

    retention_check_interval_ms: int = setting(10 * MINUTE_MS, Duration(100, 24 * HOUR_MS))
    """How often offsets that may be forgotten are looked for. In milliseconds; every 10 minutes is
    soon enough for what is kept for days."""

    metadata_bytes_max: int = setting(
        4 * KIB,
        Size(0, MIB),
        key="metadataMaxBytes",
        variables=("KAFSCALE_OFFSET_METADATA_MAX_BYTES",),
    )
    """How much text a consumer may keep beside an offset, in bytes. 4 KiB, because all of it is
    held in memory and in the metadata store."""
