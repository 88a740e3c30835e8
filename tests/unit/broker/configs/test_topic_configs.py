"""Topic configs: how they are changed, what logs make of them and what tools are shown."""

import pytest

from kafscale.broker.configs import topic_configs
from kafscale.broker.configs.topic_configs import Operation
from kafscale.config import Config
from kafscale.config.sections.storage import Storage
from kafscale.config.sections.topics import Compression
from kafscale.errors import InvalidConfigError, InvalidRequestError
from kafscale.metadata.topics import config_validation
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.metadata.topics.config_validation import TopicDefaults
from kafscale.protocol.messages.incremental_alter_configs import ConfigToAlter
from kafscale.records import Codec, TimestampType

DEFAULTS = TopicDefaults.from_config(Config())


def alter(current, *operations):
    changes = [ConfigToAlter(name, operation, value) for operation, name, value in operations]
    return topic_configs.apply_incremental(current, changes, DEFAULTS)


def described(configs, name, defaults=DEFAULTS):
    (row,) = (row for row in topic_configs.describe(configs, defaults) if row.name == name)
    return row


# --- resolving ------------------------------------------------------------------------------------


def test_a_topic_that_says_nothing_has_the_defaults():
    settings = topic_configs.resolve({}, DEFAULTS)
    assert settings.segment_bytes == 104_857_600
    assert settings.segment_ms == 604_800_000
    assert settings.retention_ms == 604_800_000
    assert settings.retention_bytes == -1
    assert settings.message_bytes_max == 1_048_588
    assert settings.timestamp_type is TimestampType.CREATE_TIME
    assert settings.compression is Codec.SNAPPY


def test_a_topic_s_own_configs_win_over_the_broker_s_and_those_over_the_defaults():
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
def test_retention_is_for_topics_whose_policy_is_to_delete(policy, retention):
    own = {"cleanup.policy": policy, "retention.ms": "1000", "retention.bytes": "5"}
    settings = topic_configs.resolve(own, DEFAULTS)
    assert (settings.retention_ms, settings.retention_bytes) == retention
    assert settings.has_delete_policy == (policy != "compact")


def test_a_compacted_topic_takes_what_kafka_s_cleaner_takes():
    own = {
        "cleanup.policy": "compact",
        "delete.retention.ms": "0",
        "max.compaction.lag.ms": "3600000",
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "60000",
    }
    assert config_validation.validate(own, DEFAULTS) == own
    defaults = {name: described({}, name).value for name in own}
    assert defaults == {
        "cleanup.policy": "delete",
        "delete.retention.ms": "86400000",
        "max.compaction.lag.ms": str(2**63 - 1),
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "0",
    }


@pytest.mark.parametrize("value", ["none", "uncompressed", "producer"])
def test_batches_can_be_left_as_they_came(value):
    assert topic_configs.resolve({"compression.type": value}, DEFAULTS).compression is None


def test_a_stored_value_that_is_wrong_is_not_replaced_by_a_default():
    with pytest.raises(InvalidConfigError, match="retention"):
        topic_configs.resolve({"retention.ms": "forever"}, DEFAULTS)


def test_what_no_log_obeys_does_not_keep_one_from_opening():
    """A newer version may have stored more; a fixed value may have been changed in the broker."""
    stored = {"from.the.future": "x", "index.interval.bytes": "12345"}
    assert topic_configs.resolve(stored, DEFAULTS) == topic_configs.resolve({}, DEFAULTS)


# --- changing -------------------------------------------------------------------------------------


def test_single_configs_are_set_and_deleted_and_the_others_stay():
    current = {"retention.ms": "1", "segment.ms": "2"}
    changed = alter(
        current, (Operation.SET, "retention.bytes", "3"), (Operation.DELETE, "segment.ms", None)
    )
    assert changed == {"retention.ms": "1", "retention.bytes": "3"}
    assert current == {"retention.ms": "1", "segment.ms": "2"}


def test_deleting_what_is_not_there_is_no_error():
    assert alter({}, (Operation.DELETE, "segment.ms", "ignored")) == {}


def test_a_list_begins_as_its_default_and_has_every_word_once():
    assert alter({}, (Operation.APPEND, "cleanup.policy", "delete")) == {"cleanup.policy": "delete"}
    changed = alter({}, (Operation.APPEND, "cleanup.policy", "compact"))
    assert changed == {"cleanup.policy": "delete,compact"}


def test_words_are_subtracted_from_a_list():
    stored = {"cleanup.policy": "compact,delete"}
    changed = alter(stored, (Operation.SUBTRACT, "cleanup.policy", "compact,other"))
    assert changed == {"cleanup.policy": "delete"}
    with pytest.raises(InvalidConfigError):
        alter({}, (Operation.SUBTRACT, "cleanup.policy", "delete"))


@pytest.mark.parametrize(
    ("operation", "error", "reason"),
    [
        ((Operation.SET, "nonsense", "1"), InvalidConfigError, "Unknown topic config"),
        ((Operation.DELETE, "nonsense", None), InvalidConfigError, "Unknown topic config"),
        ((Operation.SET, "segment.ms", "0"), InvalidConfigError, "at least 1"),
        ((Operation.SET, "segment.ms", None), InvalidRequestError, "Null value"),
        ((Operation.APPEND, "segment.ms", "1"), InvalidConfigError, "type is not LIST"),
        ((Operation.SUBTRACT, "segment.ms", "1"), InvalidConfigError, "type is not LIST"),
        ((4, "segment.ms", "1"), InvalidRequestError, "Unknown operation 4"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(operation, error, reason):
    with pytest.raises(error, match=reason):
        alter({"retention.ms": "1"}, operation)


def test_a_config_is_changed_once_in_a_request():
    with pytest.raises(InvalidRequestError, match="duplicate"):
        alter({}, (Operation.SET, "segment.ms", "1"), (Operation.DELETE, "segment.ms", None))


# --- describing -----------------------------------------------------------------------------------


def test_every_config_is_described_with_a_type_and_a_sentence():
    rows = topic_configs.describe({}, DEFAULTS)
    assert [row.name for row in rows] == sorted(TOPIC_CONFIGS)
    for row in rows:
        assert row.documentation.endswith(".")
        assert row.type != ConfigType.UNKNOWN
        assert row.source == ConfigSource.DEFAULT
        assert row.is_default
        assert not row.is_sensitive


def test_what_cannot_be_changed_is_read_only():
    assert not described({}, "retention.ms").read_only
    assert not described({}, "min.insync.replicas").read_only
    assert described({}, "preallocate").read_only


def test_a_value_says_where_it_comes_from_and_what_it_hides():
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
