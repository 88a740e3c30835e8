"""Every topic config that we know, one row each: what it may be, and what it does.

The law: a config that exists does something. There are three ways to keep it:

* An honoured config takes any value of its kind, and the logs of the topic obey it.
* A settled config takes any value of its kind too, because we keep what each of them promises:
  min.insync.replicas is met by storage that is durable before it answers, and the configs of the
  log cleaner are for the job that compacts topics, which brokers leave to Spark.
* A fixed config has one value only, its default. Naming that changes nothing; another would
  promise what we do not do, and is refused.

Names, kinds and defaults are Kafka's. What may be stored by these rows is in `topic_config_rules`.
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
    """How a config keeps the law."""

    APPLIED = "applied"
    ACCEPTED = "accepted"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A row of the table."""

    effect: Effect
    name: str
    type: ValueType
    default: str
    """What holds where neither the topic nor the broker says anything."""
    _: KW_ONLY
    synonym: str = ""
    """What a broker's config of the same meaning is called in Kafka; empty for none."""
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
        " retention.bytes; compact leaves the newest of each key, whenever the job compact runs.",
    ),
    TopicConfig(
        APPLIED,
        "compression.type",
        Enum(("none", "uncompressed", "producer", "gzip", "snappy", "lz4", "zstd")),
        "snappy",
        synonym="compression.type",
        documentation="What segments compress batches with that came uncompressed; with producer,"
        " uncompressed and none they stay so. Batches that came compressed stay as they are.",
    ),
    TopicConfig(
        APPLIED,
        "max.message.bytes",
        Integer(0, INT_MAX),
        "1048588",
        synonym="message.max.bytes",
        documentation="The largest record batch, after compression, that is taken.",
    ),
    TopicConfig(
        APPLIED,
        "message.timestamp.type",
        Enum(("CreateTime", "LogAppendTime")),
        "CreateTime",
        synonym="log.message.timestamp.type",
        documentation="Whose clock records are stamped by: the producer's or the broker's.",
    ),
    TopicConfig(
        APPLIED,
        "retention.bytes",
        _LIMIT,
        "-1",
        synonym="log.retention.bytes",
        documentation="How many bytes of a partition are kept, to whole segments; -1 for all.",
    ),
    TopicConfig(
        APPLIED,
        "retention.ms",
        _LIMIT,
        str(WEEK_MS),
        synonym="log.retention.ms",
        documentation="How long records are kept, to whole segments; -1 for ever.",
    ),
    TopicConfig(
        APPLIED,
        "segment.bytes",
        Integer(1, INT_MAX),
        "104857600",
        synonym="log.segment.bytes",
        documentation="The size at which a segment is complete.",
    ),
    TopicConfig(
        APPLIED,
        "segment.ms",
        Integer(1),
        str(WEEK_MS),
        synonym="log.roll.ms",
        documentation="The age at which a segment is complete, however small it is.",
    ),
    TopicConfig(
        ACCEPTED,
        "min.insync.replicas",
        Integer(1, INT_MAX),
        "1",
        synonym="min.insync.replicas",
        documentation="Met by any number: records are durable in the store before acks=all is"
        " answered, and the store replicates them.",
    ),
    TopicConfig(
        ACCEPTED,
        "delete.retention.ms",
        _MILLISECONDS,
        "86400000",
        synonym="log.cleaner.delete.retention.ms",
        documentation="How long a compacted topic keeps the marks of deleted keys.",
    ),
    TopicConfig(
        ACCEPTED,
        "max.compaction.lag.ms",
        Integer(1),
        str(LONG_MAX),
        synonym="log.cleaner.max.compaction.lag.ms",
        documentation="How long a record of a compacted topic may stay uncompacted.",
    ),
    TopicConfig(
        ACCEPTED,
        "min.compaction.lag.ms",
        _MILLISECONDS,
        "0",
        synonym="log.cleaner.min.compaction.lag.ms",
        documentation="How long a record of a compacted topic stays uncompacted.",
    ),
    TopicConfig(
        ACCEPTED,
        "min.cleanable.dirty.ratio",
        Ratio(),
        "0.5",
        synonym="log.cleaner.min.cleanable.ratio",
        documentation="From which share of uncompacted records a compacted topic is compacted.",
    ),
    TopicConfig(
        FIXED,
        "file.delete.delay.ms",
        _MILLISECONDS,
        "60000",
        synonym="log.segment.delete.delay.ms",
        documentation="Of files on a broker's disk, which keeps none.",
    ),
    TopicConfig(
        FIXED,
        "flush.messages",
        Integer(1),
        str(LONG_MAX),
        synonym="log.flush.interval.messages",
        documentation="Nothing to force: what is acknowledged with acks=all is durable.",
    ),
    TopicConfig(
        FIXED,
        "flush.ms",
        _MILLISECONDS,
        str(LONG_MAX),
        synonym="log.flush.interval.ms",
        documentation="Nothing to force: what is acknowledged with acks=all is durable.",
    ),
    TopicConfig(
        FIXED,
        "follower.replication.throttled.replicas",
        StringList(),
        "",
        documentation="Of replication between brokers, which there is none of.",
    ),
    TopicConfig(
        FIXED,
        "index.interval.bytes",
        Integer(0, INT_MAX),
        "4096",
        synonym="log.index.interval.bytes",
        documentation="How far the entries of an index lie apart: one setting for all topics.",
    ),
    TopicConfig(
        FIXED,
        "leader.replication.throttled.replicas",
        StringList(),
        "",
        documentation="Of replication between brokers, which there is none of.",
    ),
    TopicConfig(
        FIXED,
        "local.retention.bytes",
        Integer(-2),
        "-2",
        synonym="log.local.retention.bytes",
        documentation="Of tiered storage: every record is in the store from the beginning.",
    ),
    TopicConfig(
        FIXED,
        "local.retention.ms",
        Integer(-2),
        "-2",
        synonym="log.local.retention.ms",
        documentation="Of tiered storage: every record is in the store from the beginning.",
    ),
    TopicConfig(
        FIXED,
        "message.downconversion.enable",
        Boolean(),
        "true",
        synonym="log.message.downconversion.enable",
        documentation="Old consumers get records in their own format.",
    ),
    TopicConfig(
        FIXED,
        "message.format.version",
        Enum(("3.0-IV1",)),
        "3.0-IV1",
        synonym="log.message.format.version",
        documentation="Records are stored in format 2, which came last.",
    ),
    TopicConfig(
        FIXED,
        "message.timestamp.after.max.ms",
        _MILLISECONDS,
        str(LONG_MAX),
        synonym="log.message.timestamp.after.max.ms",
        documentation="How far a timestamp may lie in the future, which is not checked.",
    ),
    TopicConfig(
        FIXED,
        "message.timestamp.before.max.ms",
        _MILLISECONDS,
        str(LONG_MAX),
        synonym="log.message.timestamp.before.max.ms",
        documentation="How far a timestamp may lie in the past, which is not checked.",
    ),
    TopicConfig(
        FIXED,
        "preallocate",
        Boolean(),
        "false",
        synonym="log.preallocate",
        documentation="Of files on a broker's disk, which keeps none.",
    ),
    TopicConfig(
        FIXED,
        "remote.log.copy.disable",
        Boolean(),
        "false",
        documentation="Of tiered storage: every record is in the store from the beginning.",
    ),
    TopicConfig(
        FIXED,
        "remote.log.delete.on.disable",
        Boolean(),
        "false",
        documentation="Of tiered storage: every record is in the store from the beginning.",
    ),
    TopicConfig(
        FIXED,
        "remote.storage.enable",
        Boolean(),
        "false",
        documentation="Of tiered storage: every record is in the store from the beginning.",
    ),
    TopicConfig(
        FIXED,
        "segment.index.bytes",
        Integer(4, INT_MAX),
        "10485760",
        synonym="log.index.size.max.bytes",
        documentation="Of files on a broker's disk, which keeps none.",
    ),
    TopicConfig(
        FIXED,
        "segment.jitter.ms",
        _MILLISECONDS,
        "0",
        synonym="log.roll.jitter.ms",
        documentation="Segments are complete at their age exactly.",
    ),
    TopicConfig(
        FIXED,
        "unclean.leader.election.enable",
        Boolean(),
        "false",
        synonym="unclean.leader.election.enable",
        documentation="Every new leader has every acknowledged record.",
    ),
)

TOPIC_CONFIGS: Final = {row.name: row for row in sorted(_ROWS, key=lambda row: row.name)}

assert len(TOPIC_CONFIGS) == len(_ROWS)
assert all(row.type.parse(row.default) == row.default for row in _ROWS)
