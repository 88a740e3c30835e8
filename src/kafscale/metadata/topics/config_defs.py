"""The definitions of all topic configs: type, default and effect.

Names and values are those of Kafka 4.1. A config accepts every value that Kafka accepts, with
tiered storage disabled as by default. It has one of three effects:

* An applied config is used by the logs of the topic.
* An accepted config is met, whatever its value: min.insync.replicas by storage that is durable
  before it acknowledges.
* A kept config is stored and shown, and nothing uses it. Its documentation says why.
"""

import enum
from dataclasses import KW_ONLY, dataclass
from typing import Final

from kafscale.metadata.topics.config_types import (
    INT_MAX,
    LONG_MAX,
    LONG_MIN,
    Boolean,
    Enum,
    Integer,
    Ratio,
    ReplicaList,
    StringList,
    ValueType,
)

WEEK_MS: Final = 7 * 24 * 3600 * 1000


class Effect(enum.Enum):
    """What setting a config does."""

    APPLIED = "applied"
    ACCEPTED = "accepted"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The definition of a topic config."""

    effect: Effect
    name: str
    type: ValueType
    default: str
    """The value if neither the topic nor the broker sets it."""
    _: KW_ONLY
    synonym: str = ""
    """The name of Kafka's broker config of the same meaning, if there is one."""
    documentation: str

    @property
    def is_used(self) -> bool:
        return self.effect is not Effect.KEPT

    @property
    def full_documentation(self) -> str:
        """The documentation for clients, which says so if the config is not used."""
        return self.documentation if self.is_used else f"{NOT_USED} {self.documentation}"


NOT_USED: Final = "Kafscale keeps this config but does not use it."

APPLIED: Final = Effect.APPLIED
ACCEPTED: Final = Effect.ACCEPTED
KEPT: Final = Effect.KEPT

_MILLISECONDS: Final = Integer(0)
_LIMIT: Final = Integer(-1)

_ROWS: Final = (
    TopicConfig(
        APPLIED,
        "cleanup.policy",
        StringList(("compact", "delete")),
        "delete",
        synonym="log.cleanup.policy",
        documentation="What happens to old records: delete removes them by retention.ms and"
        " retention.bytes; compact keeps the newest of each key; an empty list keeps all records.",
    ),
    TopicConfig(
        APPLIED,
        "compression.type",
        Enum(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), aliases=("none",)),
        "snappy",
        synonym="compression.type",
        documentation="The codec for batches that arrive uncompressed, applied when a segment is"
        " written; producer, uncompressed and none leave them uncompressed. Compressed batches are"
        " stored as they are.",
    ),
    TopicConfig(
        APPLIED,
        "max.message.bytes",
        Integer(0, INT_MAX),
        "1048588",
        synonym="message.max.bytes",
        documentation="The largest accepted record batch, after compression.",
    ),
    TopicConfig(
        APPLIED,
        "message.timestamp.after.max.ms",
        _MILLISECONDS,
        "3600000",
        synonym="log.message.timestamp.after.max.ms",
        documentation="How far the timestamp of a record may be ahead of the broker's clock, with"
        " CreateTime; a batch with a later one is refused with INVALID_TIMESTAMP.",
    ),
    TopicConfig(
        APPLIED,
        "message.timestamp.before.max.ms",
        _MILLISECONDS,
        str(LONG_MAX),
        synonym="log.message.timestamp.before.max.ms",
        documentation="How far the timestamp of a record may be behind the broker's clock, with"
        " CreateTime; a batch whose first record is older is refused with INVALID_TIMESTAMP.",
    ),
    TopicConfig(
        APPLIED,
        "message.timestamp.type",
        Enum(("CreateTime", "LogAppendTime")),
        "CreateTime",
        synonym="log.message.timestamp.type",
        documentation="Whether timestamps are set by the producer or by the broker.",
    ),
    TopicConfig(
        APPLIED,
        "retention.bytes",
        Integer(LONG_MIN),
        "-1",
        synonym="log.retention.bytes",
        documentation="The size above which the oldest segments are deleted; negative: no limit.",
    ),
    TopicConfig(
        APPLIED,
        "retention.ms",
        _LIMIT,
        str(WEEK_MS),
        synonym="log.retention.ms",
        documentation="The age above which segments are deleted; -1: no limit.",
    ),
    TopicConfig(
        APPLIED,
        "segment.bytes",
        Integer(1, INT_MAX),
        "104857600",
        synonym="log.segment.bytes",
        documentation="The size at which a segment is rolled. Kafka 4 refuses less than 1 MiB.",
    ),
    TopicConfig(
        APPLIED,
        "segment.ms",
        Integer(1),
        str(WEEK_MS),
        synonym="log.roll.ms",
        documentation="The age at which a segment is rolled, whatever its size.",
    ),
    TopicConfig(
        ACCEPTED,
        "min.insync.replicas",
        Integer(1, INT_MAX),
        "1",
        synonym="min.insync.replicas",
        documentation="Any value is met: records are durable in the object store, which replicates"
        " them, before acks=all is acknowledged.",
    ),
    TopicConfig(
        APPLIED,
        "delete.retention.ms",
        _MILLISECONDS,
        "86400000",
        synonym="log.cleaner.delete.retention.ms",
        documentation="How long a compacted topic keeps tombstones.",
    ),
    TopicConfig(
        APPLIED,
        "max.compaction.lag.ms",
        Integer(1),
        str(LONG_MAX),
        synonym="log.cleaner.max.compaction.lag.ms",
        documentation="The longest time that a record stays uncompacted.",
    ),
    TopicConfig(
        APPLIED,
        "min.compaction.lag.ms",
        _MILLISECONDS,
        "0",
        synonym="log.cleaner.min.compaction.lag.ms",
        documentation="The shortest time that a record stays uncompacted.",
    ),
    TopicConfig(
        APPLIED,
        "min.cleanable.dirty.ratio",
        Ratio(),
        "0.5",
        synonym="log.cleaner.min.cleanable.ratio",
        documentation="The share of uncompacted records at which a topic is compacted.",
    ),
    TopicConfig(
        KEPT,
        "compression.gzip.level",
        Integer(1, 9, extra=-1),
        "-1",
        synonym="compression.gzip.level",
        documentation="Batches are compressed at the default level of the codec.",
    ),
    TopicConfig(
        KEPT,
        "compression.lz4.level",
        Integer(1, 17),
        "9",
        synonym="compression.lz4.level",
        documentation="Batches are compressed at the default level of the codec.",
    ),
    TopicConfig(
        KEPT,
        "compression.zstd.level",
        Integer(-131072, 22),
        "3",
        synonym="compression.zstd.level",
        documentation="Batches are compressed at the default level of the codec.",
    ),
    TopicConfig(
        KEPT,
        "file.delete.delay.ms",
        _MILLISECONDS,
        "60000",
        synonym="log.segment.delete.delay.ms",
        documentation="Brokers keep no log files on disk.",
    ),
    TopicConfig(
        KEPT,
        "flush.messages",
        Integer(1),
        str(LONG_MAX),
        synonym="log.flush.interval.messages",
        documentation="Records are durable when acks=all is acknowledged, and maybe later"
        " with other acks.",
    ),
    TopicConfig(
        KEPT,
        "flush.ms",
        _MILLISECONDS,
        str(LONG_MAX),
        synonym="log.flush.interval.ms",
        documentation="Records are durable when acks=all is acknowledged, and maybe later"
        " with other acks.",
    ),
    TopicConfig(
        KEPT,
        "follower.replication.throttled.replicas",
        ReplicaList("follower.replication.throttled.replicas"),
        "",
        documentation="Brokers do not replicate to each other.",
    ),
    TopicConfig(
        KEPT,
        "index.interval.bytes",
        Integer(0, INT_MAX),
        "4096",
        synonym="log.index.interval.bytes",
        documentation="storage.indexIntervalBytes is the distance between index entries.",
    ),
    TopicConfig(
        KEPT,
        "leader.replication.throttled.replicas",
        ReplicaList("leader.replication.throttled.replicas"),
        "",
        documentation="Brokers do not replicate to each other.",
    ),
    TopicConfig(
        KEPT,
        "local.retention.bytes",
        Integer(-2),
        "-2",
        synonym="log.local.retention.bytes",
        documentation="All records are in object storage.",
    ),
    TopicConfig(
        KEPT,
        "local.retention.ms",
        Integer(-2),
        "-2",
        synonym="log.local.retention.ms",
        documentation="All records are in object storage.",
    ),
    TopicConfig(
        KEPT,
        "preallocate",
        Boolean(),
        "false",
        synonym="log.preallocate",
        documentation="Brokers keep no log files on disk.",
    ),
    TopicConfig(
        KEPT,
        "remote.log.copy.disable",
        Boolean(),
        "false",
        documentation="All records are in object storage.",
    ),
    TopicConfig(
        KEPT,
        "remote.log.delete.on.disable",
        Boolean(),
        "false",
        documentation="All records are in object storage.",
    ),
    TopicConfig(
        KEPT,
        "remote.storage.enable",
        Boolean(),
        "false",
        documentation="All records are in object storage. As in a Kafka without tiered storage,"
        " it cannot be true.",
    ),
    TopicConfig(
        KEPT,
        "segment.index.bytes",
        Integer(4, INT_MAX),
        "10485760",
        synonym="log.index.size.max.bytes",
        documentation="Brokers keep no log files on disk.",
    ),
    TopicConfig(
        KEPT,
        "segment.jitter.ms",
        _MILLISECONDS,
        "0",
        synonym="log.roll.jitter.ms",
        documentation="Segments are rolled without jitter.",
    ),
    TopicConfig(
        KEPT,
        "unclean.leader.election.enable",
        Boolean(),
        "false",
        synonym="unclean.leader.election.enable",
        documentation="Every new leader has all acknowledged records.",
    ),
)

TOPIC_CONFIGS: Final = {row.name: row for row in sorted(_ROWS, key=lambda row: row.name)}

assert len(TOPIC_CONFIGS) == len(_ROWS)
assert all(row.type.parse(row.default) == row.default for row in _ROWS)


def is_used(name: str) -> bool:
    """Whether a topic config has an effect, as far as is known.

    >>> is_used("retention.ms"), is_used("file.delete.delay.ms"), is_used("of.another.broker")
    (True, False, True)
    """
    row = TOPIC_CONFIGS.get(name)
    return row is None or row.is_used
