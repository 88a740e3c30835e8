"""Validation of topic configs and its error messages."""

import pytest

from kafscale.config import Config
from kafscale.errors import InvalidConfigError
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS
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
    assert validate(configs) == configs


def test_no_compression_has_two_names():
    """Kafka knows `uncompressed` only; the setting compression.type has always had `none`."""
    assert validate({"compression.type": "none"}) == {"compression.type": "none"}


def test_stored_values_are_normalized():
    assert validate({"retention.ms": " 0100 "}) == {"retention.ms": "100"}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: .*at least -1"),
        ("retention.bytes", "many", "retention.bytes: Not a number of type LONG"),
        ("segment.bytes", "0", "segment.bytes: Value must be at least 1"),
        ("segment.bytes", str(2**31), "Not a number of type INT"),
        ("compression.lz4.level", "18", "Value must be no more than 17"),
        ("message.timestamp.type", "Now", "one of: CreateTime, LogAppendTime"),
        ("compression.type", "brotli", "one of: uncompressed, zstd, lz4"),
        ("cleanup.policy", "shred", "one of: compact, delete"),
        ("cleanup.policy", "delete,", "one of: compact, delete"),
        ("min.insync.replicas", "0", "at least 1"),
        ("nonsense", "1", "Unknown topic config name: nonsense"),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
    ],
)
def test_unsupported_values_are_rejected_with_a_reason(name, value, reason):
    with pytest.raises(InvalidConfigError, match=reason):
        validate({"segment.ms": "1000", name: value})


def test_kept_configs_say_that_they_are_not_used():
    kept = [row for row in TOPIC_CONFIGS.values() if not row.is_used]
    assert "file.delete.delay.ms" in {row.name for row in kept}
    for row in TOPIC_CONFIGS.values():
        assert row.full_documentation.startswith("Kafscale keeps this config but") == (row in kept)


def test_defaults_equal_those_of_the_settings():
    """They are said in two rooms: here for all topics, and where the settings are declared."""
    assert DEFAULTS.values == TopicDefaults().values
