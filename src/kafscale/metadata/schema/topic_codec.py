"""Encodes topics and partition states as the published protobuf messages.

Invariants: decoding returns a value equal to the encoded one, with the revisions of its entry; an
invalid value raises `DamagedObjectError`. Default configs are written out for readers of the
published schema, and `config_set` lists the configs that were set explicitly. Records of other
writers, who know the published schema only, can be read too.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from kafscale.errors import DamagedObjectError
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import (
    DEFAULT_NAMESPACE,
    NO_REVISION,
    TOPIC_ID_BYTES,
    PartitionState,
    SegmentInfo,
    Topic,
)
from kafscale.metadata.schema.protobuf import format_time, parse, read_time, serialize
from kafscale.metadata.store.base import Entry

REPLICATION_FACTOR: Final = 1
RETENTION_MS_DEFAULT: Final = 604_800_000
RETENTION_BYTES_DEFAULT: Final = -1
SEGMENT_BYTES_DEFAULT: Final = 104_857_600
CONFIG_DEFAULTS: Final[Mapping[str, str]] = {
    "compression.type": "snappy",
    "cleanup.policy": "delete",
}

INT64_MAX: Final = 2**63 - 1

FIELD_CONFIGS: Final = frozenset(("retention.ms", "retention.bytes", "segment.bytes"))
"""The configs that are also fields of the record."""

SEGMENTS_MAX: Final = 100
"""How many of the newest segments a state lists. etcd limits requests to 1.5 MiB, and every
watching broker receives the whole state at every roll."""


def encode_topic(topic: Topic) -> bytes:
    record = messages.TopicConfig(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=REPLICATION_FACTOR,
        retention_ms=int(topic.configs.get("retention.ms", RETENTION_MS_DEFAULT)),
        retention_bytes=int(topic.configs.get("retention.bytes", RETENTION_BYTES_DEFAULT)),
        segment_bytes=int(topic.configs.get("segment.bytes", SEGMENT_BYTES_DEFAULT)),
        created_at=format_time(topic.created_ms),
        config={**CONFIG_DEFAULTS, **topic.configs},
        topic_id=topic.id,
        config_version=topic.version,
        namespace=topic.namespace,
        config_set=sorted(topic.configs),
        id_in_keys=topic.id_in_keys,
        earlier_without_id=topic.earlier_without_id,
        emptied_ms=topic.emptied_ms,
        replicas={
            number: messages.ReplicaList(broker_ids=broker_ids)
            for number, broker_ids in topic.replicas.items()
        },
    )
    return serialize(record)


def decode_topic(entry: Entry) -> Topic:
    record = parse(messages.TopicConfig(), entry)
    key = keys.parse(entry.key)
    assert isinstance(key, keys.TopicConfigKey | keys.DeletionKey | keys.InternalTopicKey), (
        entry.key
    )
    if record.name != key.topic:
        raise DamagedObjectError(entry.key, f"contains another topic name: {record.name!r}")
    if record.partitions < 1:
        raise DamagedObjectError(entry.key, f"invalid partition count {record.partitions}")
    if len(record.topic_id) not in {0, TOPIC_ID_BYTES}:
        raise DamagedObjectError(entry.key, f"invalid topic id of {len(record.topic_id)} bytes")
    return Topic(
        name=record.name,
        id=record.topic_id or _derived_id(record.name, entry.create_revision),
        partitions=record.partitions,
        configs=_checked(entry, _explicit_configs(record)),
        created_ms=read_time(entry, record.created_at),
        namespace=record.namespace or DEFAULT_NAMESPACE,
        version=record.config_version or 1,
        id_in_keys=record.id_in_keys,
        earlier_without_id=record.earlier_without_id,
        emptied_ms=record.emptied_ms,
        replicas={number: tuple(each.broker_ids) for number, each in record.replicas.items()},
        create_revision=entry.create_revision,
        mod_revision=entry.mod_revision,
    )


def encode_partition_state(state: PartitionState) -> bytes:
    record = messages.PartitionState(
        topic=state.topic,
        partition=state.partition,
        leader_broker=state.leader_broker,
        leader_epoch=state.leader_epoch,
        log_start_offset=state.log_start_offset,
        log_end_offset=state.log_end_offset,
        high_watermark=state.high_watermark,
        active_segment=state.active_segment,
        segments=[
            messages.SegmentInfo(
                base_offset=segment.base_offset,
                size_bytes=segment.size_bytes,
                created_at=format_time(segment.created_ms),
                last_offset=segment.last_offset,
                max_timestamp_ms=segment.max_timestamp_ms,
            )
            for segment in state.segments[-SEGMENTS_MAX:]
        ],
        segment_count=state.segment_count,
        size_bytes=state.size_bytes,
        topic_id=state.topic_id,
        rolled_offset=state.rolled_offset,
    )
    return serialize(record)


def decode_partition_state(entry: Entry) -> PartitionState:
    record = parse(messages.PartitionState(), entry)
    return PartitionState(
        topic=record.topic,
        topic_id=record.topic_id,
        partition=record.partition,
        leader_broker=record.leader_broker,
        leader_epoch=record.leader_epoch,
        log_start_offset=record.log_start_offset,
        log_end_offset=record.log_end_offset,
        high_watermark=record.high_watermark,
        active_segment=record.active_segment,
        segments=tuple(
            SegmentInfo(
                base_offset=segment.base_offset,
                size_bytes=segment.size_bytes,
                created_ms=read_time(entry, segment.created_at),
                last_offset=segment.last_offset,
                max_timestamp_ms=segment.max_timestamp_ms,
            )
            for segment in record.segments
        ),
        segment_count=record.segment_count,
        size_bytes=record.size_bytes,
        rolled_offset=record.rolled_offset,
        mod_revision=entry.mod_revision,
    )


def _explicit_configs(record: messages.TopicConfig) -> dict[str, str]:
    """The configs that were set explicitly."""
    if record.topic_id:
        return {name: record.config[name] for name in record.config_set if name in record.config}
    # Record of another writer: a field at its default was probably not set explicitly.
    fields = {
        "retention.ms": (record.retention_ms, RETENTION_MS_DEFAULT),
        "retention.bytes": (record.retention_bytes, RETENTION_BYTES_DEFAULT),
        "segment.bytes": (record.segment_bytes, SEGMENT_BYTES_DEFAULT),
    }
    configs = {
        name: str(value) for name, (value, default) in fields.items() if value not in {0, default}
    }
    return configs | {
        name: value for name, value in record.config.items() if CONFIG_DEFAULTS.get(name) != value
    }


def _checked(entry: Entry, configs: dict[str, str]) -> dict[str, str]:
    """The configs, of which those that are also fields of the record must be numbers."""
    for name in FIELD_CONFIGS & configs.keys():
        text = configs[name]
        if (
            not re.fullmatch(r"-?\d{1,19}", text, re.ASCII)
            or not -INT64_MAX - 1 <= int(text) <= INT64_MAX
        ):
            raise DamagedObjectError(entry.key, f"{name} is not a number: {text!r}")
    return configs


def _derived_id(name: str, create_revision: int) -> bytes:
    """Derive an id for a topic whose writer set none; all readers derive the same one."""
    assert create_revision != NO_REVISION
    return hashlib.sha256(f"{name}@{create_revision}".encode()).digest()[:TOPIC_ID_BYTES]
