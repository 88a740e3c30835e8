"""Topic configs: altered for clients, resolved for logs, described for tools.

Invariants: a change is applied as a whole or not at all. A config that the topic does not set has
its value from the broker's settings, else Kafka's default. `metadata.topics.config_validation`
checks values; handlers store them.
"""

from collections.abc import Collection, Mapping
from typing import Final

from kafscale.broker.configs import changes
from kafscale.errors import InvalidConfigError
from kafscale.metadata.topics import config_validation
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS, TopicConfig
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType, split_list
from kafscale.metadata.topics.config_validation import COMPACT, DELETE, TopicDefaults
from kafscale.protocol.messages.describe_configs import ConfigSynonym, DescribedConfig
from kafscale.records import Codec, TimestampType
from kafscale.storage.compaction.rules import CompactionRules
from kafscale.storage.log.config import LogSettings

_TIMESTAMP_TYPES: Final = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}
_POLICIES: Final = TOPIC_CONFIGS["cleanup.policy"].type
FOREVER: Final = -1
_AS_SENT: Final = frozenset({"none", "uncompressed", "producer"})


# --- altering -------------------------------------------------------------------------------------


class TopicRules:
    """What the configs of a topic may be.

    Stored configs that do not change are not checked: an older version may have allowed more.
    """

    not_a_list = staticmethod(changes.not_a_list)

    def __init__(self, defaults: TopicDefaults) -> None:
        self._defaults = defaults

    def inherited_list(self, name: str) -> str | None:
        row = TOPIC_CONFIGS.get(name)
        is_list = row is not None and row.type.type is ConfigType.LIST
        return self._defaults.values[name] if is_list else None

    def checked(self, configs: Mapping[str, str], named: Collection[str]) -> dict[str, str]:
        values = {
            name: config_validation.validate_value(name, configs[name])
            for name in named
            if name in configs
        }
        result = {**configs, **values}
        config_validation.check_together(result)
        return result


# --- reading --------------------------------------------------------------------------------------


def resolve(configs: Mapping[str, str], defaults: TopicDefaults) -> LogSettings:
    """The log configuration of a topic.

    Stored values that make no sense raise `InvalidConfigError`, because other tools may have
    written them: it is better not to open a log than to delete its records by a default. Names
    without effect on logs are ignored, and so are the bounds of values that were valid once.
    """
    own = {name: value for name, value in configs.items() if name in TOPIC_CONFIGS}
    values = {**defaults.values, **own}
    try:
        return _log_settings(values)
    except (KeyError, ValueError) as error:
        raise InvalidConfigError(f"the stored topic configs {own} are invalid: {error}") from None


def _log_settings(values: Mapping[str, str]) -> LogSettings:
    policies = split_list(_POLICIES.parse(values["cleanup.policy"]))
    has_delete_policy = DELETE in policies
    compression = values["compression.type"]
    segment_bytes, segment_ms = int(values["segment.bytes"]), int(values["segment.ms"])
    if segment_bytes < 1 or segment_ms < 1:
        raise ValueError("the limits of segments must be at least 1")
    compaction = _compaction(values) if COMPACT in policies else None
    return LogSettings(
        segment_bytes=segment_bytes,
        # As in Kafka, so that records are compacted in time.
        segment_ms=min(segment_ms, compaction.lag_ms_max) if compaction else segment_ms,
        retention_ms=max(int(values["retention.ms"]), FOREVER) if has_delete_policy else FOREVER,
        retention_bytes=(
            max(int(values["retention.bytes"]), FOREVER) if has_delete_policy else FOREVER
        ),
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
    inherited = row.synonym or row.name
    synonyms = [
        ConfigSynonym(inherited, values[row.name], source)
        for source, values in defaults.layers
        if row.name in values
    ]
    if own is not None:
        synonyms.insert(0, ConfigSynonym(row.name, own, ConfigSource.TOPIC))
    return DescribedConfig(
        name=row.name,
        value=synonyms[0].value,
        read_only=False,
        is_default=own is None,
        source=synonyms[0].source,
        synonyms=synonyms,
        type=row.type.type,
        documentation=row.full_documentation,
    )
