"""Topic configs: altered for clients, resolved for logs, described for tools.

Invariants: a change is applied as a whole or not at all. A config that the topic does not set has
its value from the broker's settings, else Kafka's default. `metadata.topics.config_validation`
checks values; handlers store them.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import Final

from kafscale.errors import InvalidConfigError, InvalidRequestError
from kafscale.metadata.topics import config_validation
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS, Effect, TopicConfig
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType, split_list
from kafscale.metadata.topics.config_validation import COMPACT, DELETE, TopicDefaults
from kafscale.protocol.messages.describe_configs import ConfigSynonym, DescribedConfig
from kafscale.protocol.messages.incremental_alter_configs import ConfigToAlter
from kafscale.records import Codec, TimestampType
from kafscale.storage.compaction.rules import CompactionRules
from kafscale.storage.log.config import LogSettings

_TIMESTAMP_TYPES: Final = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}
_FOREVER: Final = "-1"
_AS_SENT: Final = frozenset({"none", "uncompressed", "producer"})


class Operation(enum.IntEnum):
    """The operations of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


# --- altering -------------------------------------------------------------------------------------


def apply_incremental(
    current: Mapping[str, str], operations: Iterable[ConfigToAlter], defaults: TopicDefaults
) -> dict[str, str]:
    """The topic's own configs after some operations; raises if one of them is invalid."""
    changed = dict(current)
    seen = set()
    for operation in operations:
        name = operation.name
        if name in seen:
            raise InvalidRequestError("Error due to duplicate config keys")
        seen.add(name)
        value = _apply(changed.get(name), operation, defaults)
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = config_validation.validate_value(name, value, defaults)
    return changed


def _apply(current: str | None, requested: ConfigToAlter, defaults: TopicDefaults) -> str | None:
    """The value of a config after an operation; None if the topic does not set it any more."""
    name = requested.name
    try:
        operation = Operation(requested.operation)
    except ValueError:
        raise InvalidRequestError(f"Unknown operation {requested.operation} on {name}") from None
    row = config_validation.definition(name)
    if operation is Operation.DELETE:
        return None
    if requested.value is None:
        raise InvalidRequestError(f"Null value not supported for: {name}")
    if operation is Operation.SET:
        return requested.value
    if row.type.type is not ConfigType.LIST:
        raise InvalidConfigError(
            f"Can't {operation.name} to key {name} because its type is not LIST."
        )
    # A list that the topic does not set starts with the default, as in Kafka.
    items = split_list(defaults.values[name] if current is None else current)
    change = split_list(requested.value)
    if operation is Operation.APPEND:
        return ",".join(dict.fromkeys([*items, *change]))
    return ",".join(item for item in items if item not in change)


# --- reading --------------------------------------------------------------------------------------


def resolve(configs: Mapping[str, str], defaults: TopicDefaults) -> LogSettings:
    """The log configuration of a topic.

    Stored values are checked again, because other tools may have written them: it is better not to
    open a log than to delete its records by a default. Configs without effect on logs are ignored.
    """
    values = dict(defaults.values)
    for name, value in configs.items():
        row = TOPIC_CONFIGS.get(name)
        if row is not None and row.effect is Effect.APPLIED:
            values[name] = config_validation.validate_value(name, value, defaults)
    policies = split_list(values["cleanup.policy"])
    has_delete_policy = DELETE in policies
    if not has_delete_policy:
        values["retention.ms"] = values["retention.bytes"] = _FOREVER
    compression = values["compression.type"]
    compaction = _compaction(values) if COMPACT in policies else None
    segment_ms = int(values["segment.ms"])
    return LogSettings(
        segment_bytes=int(values["segment.bytes"]),
        # As in Kafka, so that records are compacted in time.
        segment_ms=min(segment_ms, compaction.lag_ms_max) if compaction else segment_ms,
        retention_ms=int(values["retention.ms"]),
        retention_bytes=int(values["retention.bytes"]),
        message_bytes_max=int(values["max.message.bytes"]),
        timestamp_type=_TIMESTAMP_TYPES[values["message.timestamp.type"]],
        timestamp_after_max_ms=int(values["message.timestamp.after.max.ms"]),
        timestamp_before_max_ms=int(values["message.timestamp.before.max.ms"]),
        compression=None if compression in _AS_SENT else Codec[compression.upper()],
        has_delete_policy=has_delete_policy,
        compaction=compaction,
    )


def _compaction(values: Mapping[str, str]) -> CompactionRules:
    return CompactionRules(
        delete_retention_ms=int(values["delete.retention.ms"]),
        dirty_ratio_min=float(values["min.cleanable.dirty.ratio"]),
        lag_ms_min=int(values["min.compaction.lag.ms"]),
        lag_ms_max=int(values["max.compaction.lag.ms"]),
    )


def describe(configs: Mapping[str, str], defaults: TopicDefaults) -> list[DescribedConfig]:
    """Every config of a topic, for DescribeConfigs."""
    return [_describe(row, configs.get(row.name), defaults) for row in TOPIC_CONFIGS.values()]


def _describe(row: TopicConfig, own: str | None, defaults: TopicDefaults) -> DescribedConfig:
    values = []
    if own is not None:
        values.append(ConfigSynonym(row.name, own, ConfigSource.TOPIC))
    inherited = row.synonym or row.name
    if row.name in defaults.static:
        broker_value = defaults.values[row.name]
        values.append(ConfigSynonym(inherited, broker_value, ConfigSource.STATIC_BROKER))
        values.append(ConfigSynonym(inherited, row.default, ConfigSource.DEFAULT))
    else:
        values.append(ConfigSynonym(inherited, defaults.values[row.name], ConfigSource.DEFAULT))
    return DescribedConfig(
        name=row.name,
        value=values[0].value,
        read_only=row.effect is Effect.FIXED,
        is_default=own is None,
        source=values[0].source,
        synonyms=values,
        type=row.type.type,
        documentation=row.documentation,
    )
