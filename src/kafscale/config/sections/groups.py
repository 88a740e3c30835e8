"""Settings of consumer groups and committed offsets.

Names and defaults are those of Kafka's broker settings of the same meaning. Kafka's settings that
would have no effect do not exist.
"""

from dataclasses import dataclass

from kafscale.config.schema import setting
from kafscale.config.types import Choice, Duration, Integer, Size, StringList, Text
from kafscale.text.units import GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS

_INT_MAX = 2**31 - 1
_SESSION_TIMEOUT = Duration(1, 24 * HOUR_MS)
_SIZE = Integer(1, _INT_MAX)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Limits of consumer groups, under the names of Kafka's settings.

    Settings that start with `consumer` apply to groups with the new protocol, KIP-848, where the
    broker decides about them.
    """

    initial_rebalance_delay_ms: int = setting(3 * SECOND_MS, Duration(0, HOUR_MS))
    """How long the first rebalance of an empty group waits for more members; every new member
    extends it. In milliseconds. 3 seconds avoid several rebalances while a group starts; 0 lets the
    first member start immediately."""

    session_timeout_ms_min: int = setting(
        6 * SECOND_MS, _SESSION_TIMEOUT, key="minSessionTimeoutMs"
    )
    """The minimum session timeout that a member may request. In milliseconds. Below 6 seconds a
    pause of a member or of the network would cause a rebalance."""

    session_timeout_ms_max: int = setting(
        30 * MINUTE_MS, _SESSION_TIMEOUT, key="maxSessionTimeoutMs"
    )
    """The maximum session timeout that a member may request. In milliseconds. 30 minutes allow for
    batch jobs, and limit how long partitions of a failed member are not consumed."""

    size_max: int = setting(_INT_MAX, _SIZE, key="maxSize")
    """The maximum number of members of a group; further ones are rejected. 2147483647 means no
    limit."""

    coordinator_append_linger_ms: int = setting(5, Duration(0, SECOND_MS))
    """How long a group change or an offset commit waits for others, to be written in one
    transaction. In milliseconds. 5 are not noticeable for consumers, and avoid most writes to the
    metadata store. 0 disables batching."""

    consumer_session_timeout_ms: int = setting(45 * SECOND_MS, Duration(SECOND_MS, HOUR_MS))
    """How long a member may miss heartbeats before it is removed from the group. In milliseconds.
    45 seconds are nine heartbeats."""

    consumer_heartbeat_interval_ms: int = setting(5 * SECOND_MS, Duration(100, HOUR_MS))
    """The heartbeat interval that the broker gives to members; they learn of a new assignment with
    it. In milliseconds. 5 seconds cause little load with large groups; lower values make rebalances
    faster."""

    consumer_session_timeout_ms_min: int = setting(
        45 * SECOND_MS, _SESSION_TIMEOUT, key="consumerMinSessionTimeoutMs"
    )
    """The minimum that `consumer.session.timeout.ms` of a single group may be. In milliseconds. 45
    seconds, as in Kafka, so that administrators of groups do not cause needless rebalances."""

    consumer_session_timeout_ms_max: int = setting(
        60 * SECOND_MS, _SESSION_TIMEOUT, key="consumerMaxSessionTimeoutMs"
    )
    """The maximum that `consumer.session.timeout.ms` of a single group may be. In milliseconds. 60
    seconds, as in Kafka, limit how long partitions of a failed member are not consumed."""

    consumer_heartbeat_interval_ms_min: int = setting(
        5 * SECOND_MS, Duration(1, HOUR_MS), key="consumerMinHeartbeatIntervalMs"
    )
    """The minimum that `consumer.heartbeat.interval.ms` of a single group may be. In milliseconds.
    5 seconds, as in Kafka, limit the load of heartbeats."""

    consumer_heartbeat_interval_ms_max: int = setting(
        15 * SECOND_MS, Duration(1, HOUR_MS), key="consumerMaxHeartbeatIntervalMs"
    )
    """The maximum that `consumer.heartbeat.interval.ms` of a single group may be. In milliseconds.
    15 seconds, as in Kafka, are a third of the session timeout."""

    consumer_size_max: int = setting(_INT_MAX, _SIZE, key="consumerMaxSize")
    """The maximum number of members of such a group; further ones are rejected. 2147483647 means no
    limit."""

    consumer_assignors: tuple[str, ...] = setting(
        ("uniform", "range"), StringList(Text("uniform or range", "uniform|range"), required=True)
    )
    """The server-side assignors; the first is used if members request none. `uniform` is first,
    because it balances best and moves fewest partitions; `range` assigns the same partition numbers
    of all topics to a member."""

    consumer_migration_policy: str = setting(
        "bidirectional", Choice(("bidirectional", "upgrade", "downgrade", "disabled"))
    )
    """In which direction a group with members may change its protocol: `upgrade` to the new one,
    `downgrade` to the classic one, both or none. `bidirectional` by default, so that consumers can
    be migrated one by one, and back."""


@dataclass(frozen=True, kw_only=True)
class Offsets:
    """Committed offsets."""

    retention_minutes: int = setting(7 * 24 * 60, Integer(1, _INT_MAX))
    """How long offsets are kept after their last use by a member of the group. In minutes. 10080
    are seven days, in which a stopped application can be started again."""

    retention_check_interval_ms: int = setting(10 * MINUTE_MS, Duration(100, 24 * HOUR_MS))
    """The interval of checks for expired offsets. In milliseconds. 10 minutes are precise enough
    for a retention of days."""

    metadata_bytes_max: int = setting(
        4 * KIB,
        Size(0, MIB),
        key="metadataMaxBytes",
        variables=("KAFSCALE_OFFSET_METADATA_MAX_BYTES",),
    )
    """The maximum size of the metadata text of a committed offset, in bytes. 4 KiB, because all of
    it is in memory and in the metadata store."""

    group_metadata_bytes_max: int = setting(MIB, Size(0, GIB), key="groupMetadataMaxBytes")
    """The maximum size of the metadata texts of all offsets of a group, in bytes. 1 MiB is ten
    times what Kafka Streams uses for a thousand partitions."""

    user_commit_bytes_per_second: int = setting(2 * MIB, Size(0, GIB))
    """How many bytes of offset commits of one user a broker writes to the metadata store per
    second. Further commits wait for up to 4 seconds, and get a retriable error then. A committed
    offset counts about 250 bytes, and its metadata. 2 MiB are 40,000 partitions that are committed
    every 5 seconds; they also keep one user from filling etcd between two compactions of its
    history. Clients that do not authenticate are one user. 0 means no limit."""

    group_commit_bytes_per_second: int = setting(MIB, Size(0, GIB))
    """The same for one group. 1 MiB are 20,000 partitions that are committed every 5 seconds."""
