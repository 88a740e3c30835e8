"""The definitions of all topic configs: type, default and effect. Names and defaults are Kafka's.

Every config has one of three effects:

* An applied config accepts any value of its type, and the logs of the topic use it.
* An accepted config accepts any value of its type, because Kafscale guarantees what each value
  promises: min.insync.replicas is met by storage that is durable before it acknowledges.
* A fixed config accepts its default only. Any other value would promise what Kafscale does not do,
  and is rejected.
"""

import enum
from dataclasses import KW_ONLY, dataclass
from typing import Final

from kafscale.metadata.topics.config_types import (
    INT_MAX,
    LONG_MAX,
    Boolean,
    Enum,
    Integer,
    Ratio,
    StringList,
    ValueType,
)

WEEK_MS: Final = 7 * 24 * 3600 * 1000


class Effect(enum.Enum):
    """What setting a config does."""

    APPLIED = "applied"
    ACCEPTED = "accepted"
    FIXED = "fixed"


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


APPLIED: Final = Effect.APPLIED
ACCEPTED: Final = Effect.ACCEPTED
FIXED: Final = Effect.FIXED

_MILLISECONDS: Final = Integer(0)
_LIMIT: Final = Integer(-1)

_ROWS: Final = (
    TopicConfig(
        APPLIED,
        "cleanup.policy",
        StringList(),
        "delete",
        synonym="log.cleanup.policy",
        documentation="What happens to old records: delete removes them by retention.ms and"
        " retention.bytes; compact keeps the newest of each key.",
    ),
    TopicConfig(
        APPLIED,
        "compression.type",
        Enum(("none", "uncompressed", "producer", "gzip", "snappy", "lz4", "zstd")),
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
        _LIMIT,
        "-1",
        synonym="log.retention.bytes",
        documentation="The size above which the oldest segments are deleted; -1: no limit.",
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
        documentation="The size at which a segment is rolled.",
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
        FIXED,
        "file.delete.delay.ms",
        _MILLISECONDS,
        "60000",
        synonym="log.segment.delete.delay.ms",
        documentation="Not applicable: brokers keep no log files on disk.",
    ),
    TopicConfig(
        FIXED,
        "flush.messages",
        Integer(1),
        str(LONG_MAX),
        synonym="log.flush.interval.messages",
        documentation="Not applicable: records acknowledged with acks=all are durable.",
    ),
    TopicConfig(
        FIXED,
        "flush.ms",
        _MILLISECONDS,
        str(LONG_MAX),
        synonym="log.flush.interval.ms",
        documentation="Not applicable: records acknowledged with acks=all are durable.",
    ),
    TopicConfig(
        FIXED,
        "follower.replication.throttled.replicas",
        StringList(),
        "",
        documentation="Not applicable: brokers do not replicate to each other.",
    ),
    TopicConfig(
        FIXED,
        "index.interval.bytes",
        Integer(0, INT_MAX),
        "4096",
        synonym="log.index.interval.bytes",
        documentation="The distance between index entries; set by storage.indexIntervalBytes.",
    ),
    TopicConfig(
        FIXED,
        "leader.replication.throttled.replicas",
        StringList(),
        "",
        documentation="Not applicable: brokers do not replicate to each other.",
    ),
    TopicConfig(
        FIXED,
        "local.retention.bytes",
        Integer(-2),
        "-2",
        synonym="log.local.retention.bytes",
        documentation="Not applicable: all records are in object storage.",
    ),
    TopicConfig(
        FIXED,
        "local.retention.ms",
        Integer(-2),
        "-2",
        synonym="log.local.retention.ms",
        documentation="Not applicable: all records are in object storage.",
    ),
    TopicConfig(
        FIXED,
        "message.downconversion.enable",
        Boolean(),
        "true",
        synonym="log.message.downconversion.enable",
        documentation="Records are down-converted for old consumers.",
    ),
    TopicConfig(
        FIXED,
        "message.format.version",
        Enum(("3.0-IV1",)),
        "3.0-IV1",
        synonym="log.message.format.version",
        documentation="Records are stored in format 2, the latest.",
    ),
    TopicConfig(
        FIXED,
        "preallocate",
        Boolean(),
        "false",
        synonym="log.preallocate",
        documentation="Not applicable: brokers keep no log files on disk.",
    ),
    TopicConfig(
        FIXED,
        "remote.log.copy.disable",
        Boolean(),
        "false",
        documentation="Not applicable: all records are in object storage.",
    ),
    TopicConfig(
        FIXED,
        "remote.log.delete.on.disable",
        Boolean(),
        "false",
        documentation="Not applicable: all records are in object storage.",
    ),
    TopicConfig(
        FIXED,
        "remote.storage.enable",
        Boolean(),
        "false",
        documentation="Not applicable: all records are in object storage.",
    ),
    TopicConfig(
        FIXED,
        "segment.index.bytes",
        Integer(4, INT_MAX),
        "10485760",
        synonym="log.index.size.max.bytes",
        documentation="Not applicable: brokers keep no log files on disk.",
    ),
    TopicConfig(
        FIXED,
        "segment.jitter.ms",
        _MILLISECONDS,
        "0",
        synonym="log.roll.jitter.ms",
        documentation="Segments are rolled without jitter.",
    ),
    TopicConfig(
        FIXED,
        "unclean.leader.election.enable",
        Boolean(),
        "false",
        synonym="unclean.leader.election.enable",
        documentation="Not applicable: every new leader has all acknowledged records.",
    ),
)

TOPIC_CONFIGS: Final = {row.name: row for row in sorted(_ROWS, key=lambda row: row.name)}

assert len(TOPIC_CONFIGS) == len(_ROWS)
assert all(row.type.parse(row.default) == row.default for row in _ROWS)
