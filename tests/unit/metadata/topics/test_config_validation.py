"""Validation of topic configs and its error messages."""

import pytest

from kafscale.config import Config
from kafscale.config.sections.storage import Storage
from kafscale.errors import InvalidConfigError
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS, Effect
from kafscale.metadata.topics.config_types import ConfigType
from kafscale.metadata.topics.config_validation import TopicDefaults, validate

DEFAULTS = TopicDefaults.from_config(Config())


def test_configs_of_common_tools_are_accepted():
    configs = {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "max.message.bytes": "2097152",
        "message.timestamp.type": "LogAppendTime",
        "min.insync.replicas": "2",
        "retention.bytes": "-1",
        "retention.ms": "86400000",
        "segment.bytes": "1073741824",
        "segment.ms": "3600000",
    }
    assert validate(configs, DEFAULTS) == configs


def test_stored_values_are_normalized():
    assert validate({"retention.ms": " 0100 "}, DEFAULTS) == {"retention.ms": "100"}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: .*at least -1"),
        ("retention.bytes", "many", "retention.bytes: Not a number of type LONG"),
        ("segment.bytes", "0", "segment.bytes: Value must be at least 1"),
        ("segment.bytes", str(2**31), "at most 2147483647"),
        ("message.timestamp.type", "Now", "one of: CreateTime, LogAppendTime"),
        ("compression.type", "brotli", "one of: none, uncompressed, producer"),
        ("cleanup.policy", "shred", "one of: compact, delete"),
        ("cleanup.policy", "", "one of: compact, delete"),
        ("min.insync.replicas", "0", "at least 1"),
        ("nonsense", "1", "Unknown topic config name: nonsense"),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
    ],
)
def test_unsupported_values_are_rejected_with_a_reason(name, value, reason):
    with pytest.raises(InvalidConfigError, match=reason):
        validate({"segment.ms": "1000", name: value}, DEFAULTS)


FIXED = [row for row in TOPIC_CONFIGS.values() if row.effect is Effect.FIXED]


@pytest.mark.parametrize("row", FIXED, ids=lambda row: row.name)
def test_fixed_config_accepts_its_default_only(row):
    other = {
        ConfigType.BOOLEAN: "false" if row.default == "true" else "true",
        ConfigType.LIST: "0:1",
    }.get(row.type.type, "5")
    assert validate({row.name: row.default}, DEFAULTS) == {row.name: row.default}
    with pytest.raises(InvalidConfigError, match=row.name):
        validate({row.name: other}, DEFAULTS)


def test_fixed_config_follows_the_broker_setting():
    defaults = TopicDefaults.from_config(Config(storage=Storage(index_interval_bytes=8192)))
    assert validate({"index.interval.bytes": "8192"}, defaults)
    with pytest.raises(InvalidConfigError, match="Value must be '8192'"):
        validate({"index.interval.bytes": "4096"}, defaults)


def test_defaults_equal_those_of_the_settings():
    """They are said in two rooms: here for all topics, and where the settings are declared."""
    values = {name: row.default for name, row in TOPIC_CONFIGS.items()}
    assert TopicDefaults(values) == DEFAULTS
