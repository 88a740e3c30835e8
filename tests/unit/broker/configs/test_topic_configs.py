"""Topic configs: altered, resolved and described."""

import pytest

from kafscale.broker.configs import changes, topic_configs
from kafscale.broker.configs.changes import Operation
from kafscale.broker.configs.topic_configs import TopicRules
from kafscale.config import Config
from kafscale.config.sections.storage import Compression, Storage
from kafscale.errors import InvalidConfigError, InvalidRequestError
from kafscale.metadata.topics import config_validation
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.protocol.messages.incremental_alter_configs import ConfigToAlter
from kafscale.records import Codec, TimestampType

DEFAULTS = TopicDefaults.from_config(Config())


def alter(current, *operations):
    requested = [ConfigToAlter(name, operation, value) for operation, name, value in operations]
    return changes.incremental(requested)(current, TopicRules(DEFAULTS))


def described(configs, name, defaults=DEFAULTS):
    (row,) = (row for row in topic_configs.describe(configs, defaults) if row.name == name)
    return row


# --- resolving ------------------------------------------------------------------------------------


def test_topic_without_configs_has_the_defaults():
    settings = topic_configs.resolve({}, DEFAULTS)
    assert settings.segment_bytes == 104_857_600
    assert settings.segment_ms == 604_800_000
    assert settings.retention_ms == 604_800_000
    assert settings.retention_bytes == -1
    assert settings.message_bytes_max == 1_048_588
    assert settings.timestamp_type is TimestampType.CREATE_TIME
    assert settings.compression is Codec.SNAPPY


def test_topic_configs_override_broker_settings_and_defaults():
    defaults = TopicDefaults.from_config(
        Config(storage=Storage(segment_bytes=5000), compression=Compression(type="zstd"))
    )
    own = {"segment.bytes": "6000", "message.timestamp.type": "LogAppendTime"}
    settings = topic_configs.resolve(own, defaults)
    assert settings.segment_bytes == 6000
    assert settings.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert settings.compression is Codec.ZSTD
    assert topic_configs.resolve({}, defaults).segment_bytes == 5000


@pytest.mark.parametrize(
    ("policy", "retention"),
    [("delete", (1000, 5)), ("compact, delete", (1000, 5)), ("compact", (-1, -1))],
)
def test_retention_applies_only_to_the_delete_policy(policy, retention):
    own = {"cleanup.policy": policy, "retention.ms": "1000", "retention.bytes": "5"}
    settings = topic_configs.resolve(own, DEFAULTS)
    assert (settings.retention_ms, settings.retention_bytes) == retention
    assert settings.has_delete_policy == (policy != "compact")


def test_compacted_topic_accepts_kafkas_cleaner_configs():
    own = {
        "cleanup.policy": "compact",
        "delete.retention.ms": "0",
        "max.compaction.lag.ms": "3600000",
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "60000",
    }
    assert config_validation.validate(own) == own
    defaults = {name: described({}, name).value for name in own}
    assert defaults == {
        "cleanup.policy": "delete",
        "delete.retention.ms": "86400000",
        "max.compaction.lag.ms": str(2**63 - 1),
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "0",
    }


@pytest.mark.parametrize("value", ["none", "uncompressed", "producer"])
def test_compression_type_keeps_batches_unchanged(value):
    assert topic_configs.resolve({"compression.type": value}, DEFAULTS).compression is None


@pytest.mark.parametrize(
    "stored",
    [
        {"retention.ms": "forever"},
        {"segment.bytes": "0"},
        {"compression.type": "brotli"},
        {"message.timestamp.type": "Now"},
        {"cleanup.policy": "shred"},
    ],
    ids=str,
)
def test_stored_value_without_a_meaning_is_an_error(stored):
    with pytest.raises(InvalidConfigError, match=next(iter(stored))):
        topic_configs.resolve(stored, DEFAULTS)


def test_configs_of_other_versions_do_not_keep_a_log_from_opening():
    stored = {"message.format.version": "3.0-IV1", "index.interval.bytes": "12345"}
    assert topic_configs.resolve(stored, DEFAULTS) == topic_configs.resolve({}, DEFAULTS)
    small = topic_configs.resolve({"segment.bytes": "6000"}, DEFAULTS)
    assert small.segment_bytes == 6000
    changed = alter(stored, (Operation.SET, "retention.ms", "1"))
    assert changed == {**stored, "retention.ms": "1"}


def test_topic_without_a_policy_keeps_its_records_for_ever():
    own = {"cleanup.policy": "", "retention.ms": "1000", "retention.bytes": "5"}
    settings = topic_configs.resolve(own, DEFAULTS)
    assert (settings.retention_ms, settings.retention_bytes) == (-1, -1)
    assert not settings.has_delete_policy
    assert not settings.requires_keys


def test_negative_retention_bytes_are_no_limit():
    assert topic_configs.resolve({"retention.bytes": "-7"}, DEFAULTS).retention_bytes == -1


# --- changing -------------------------------------------------------------------------------------


def test_incremental_change_keeps_other_configs():
    current = {"retention.ms": "1", "segment.ms": "2"}
    changed = alter(
        current, (Operation.SET, "retention.bytes", "3"), (Operation.DELETE, "segment.ms", None)
    )
    assert changed == {"retention.ms": "1", "retention.bytes": "3"}
    assert current == {"retention.ms": "1", "segment.ms": "2"}


def test_deleting_an_unset_config_is_no_error():
    assert alter({}, (Operation.DELETE, "segment.ms", "ignored")) == {}


def test_append_starts_with_the_default_and_removes_duplicates():
    assert alter({}, (Operation.APPEND, "cleanup.policy", "delete")) == {"cleanup.policy": "delete"}
    changed = alter({}, (Operation.APPEND, "cleanup.policy", "compact"))
    assert changed == {"cleanup.policy": "delete,compact"}


def test_subtract_removes_list_items():
    stored = {"cleanup.policy": "compact,delete"}
    changed = alter(stored, (Operation.SUBTRACT, "cleanup.policy", "compact,other"))
    assert changed == {"cleanup.policy": "delete"}
    assert alter({}, (Operation.SUBTRACT, "cleanup.policy", "delete")) == {"cleanup.policy": ""}


@pytest.mark.parametrize(
    ("operation", "error", "reason"),
    [
        ((Operation.SET, "nonsense", "1"), InvalidConfigError, "Unknown topic config"),
        ((Operation.SET, "segment.ms", "0"), InvalidConfigError, "at least 1"),
        ((Operation.SET, "segment.ms", None), InvalidRequestError, "Null value"),
        ((Operation.APPEND, "segment.ms", "1"), InvalidConfigError, "type is not LIST"),
        ((Operation.SUBTRACT, "segment.ms", "1"), InvalidConfigError, "type is not LIST"),
        ((4, "segment.ms", "1"), InvalidRequestError, "Unknown operations type 4"),
    ],
)
def test_invalid_operation_is_refused(operation, error, reason):
    with pytest.raises(error, match=reason):
        alter({"retention.ms": "1"}, operation)


def test_duplicate_config_key_is_refused():
    with pytest.raises(InvalidRequestError, match="duplicate"):
        alter({}, (Operation.SET, "segment.ms", "1"), (Operation.DELETE, "segment.ms", None))


# --- describing -----------------------------------------------------------------------------------


def test_topic_configs_have_a_type_and_documentation():
    rows = topic_configs.describe({}, DEFAULTS)
    assert [row.name for row in rows] == sorted(TOPIC_CONFIGS)
    for row in rows:
        assert row.documentation.endswith(".")
        assert row.type != ConfigType.UNKNOWN
        assert row.source == ConfigSource.DEFAULT
        assert row.is_default
        assert not row.is_sensitive


def test_topic_config_has_source_and_synonyms():
    config = Config(
        storage=Storage(segment_bytes=5000), origins={"storage.segmentBytes": "kafscale.yaml:3"}
    )
    row = described({"segment.bytes": "6000"}, "segment.bytes", TopicDefaults.from_config(config))
    assert (row.value, row.source, row.is_default) == ("6000", ConfigSource.TOPIC, False)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms] == [
        ("segment.bytes", "6000", ConfigSource.TOPIC),
        ("log.segment.bytes", "5000", ConfigSource.STATIC_BROKER),
        ("log.segment.bytes", "104857600", ConfigSource.DEFAULT),
    ]
    inherited = described({}, "segment.bytes", TopicDefaults.from_config(config))
    assert (inherited.value, inherited.source) == ("5000", ConfigSource.STATIC_BROKER)
