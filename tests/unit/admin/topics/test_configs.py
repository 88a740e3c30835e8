"""Configs of a topic and their defaults."""

import msgspec

from kafscale.admin.topics.configs import _topic_config
from kafscale.protocol.messages.describe_configs import ConfigSynonym, DescribedConfig

TOPIC, STATIC_BROKER, DEFAULT = 1, 4, 5


def test_broker_settings_override_kafkas_defaults():
    config = _topic_config(
        DescribedConfig(
            name="retention.ms",
            value="1000",
            source=TOPIC,
            type=5,
            documentation="How long.",
            synonyms=[
                ConfigSynonym("retention.ms", "1000", TOPIC),
                ConfigSynonym("log.retention.ms", "2000", STATIC_BROKER),
                ConfigSynonym("log.retention.ms", "3000", DEFAULT),
            ],
        )
    )
    assert msgspec.to_builtins(config) == {
        "name": "retention.ms",
        "value": "1000",
        "default": "2000",
        "isSet": True,
        "readOnly": False,
        "sensitive": False,
        "type": "long",
        "documentation": "How long.",
    }


def test_unset_config_has_the_default():
    synonyms = [ConfigSynonym("a", "1", DEFAULT)]
    config = _topic_config(DescribedConfig(name="a", value="1", source=DEFAULT, synonyms=synonyms))
    assert (config.value, config.default, config.is_set) == ("1", "1", False)
    assert (config.type, config.documentation) == ("unknown", None)


def test_sensitive_values_are_not_returned():
    synonyms = [ConfigSynonym("a", "secret", DEFAULT)]
    config = _topic_config(
        DescribedConfig(
            name="a", value="secret", source=DEFAULT, is_sensitive=True, synonyms=synonyms
        )
    )
    assert config.sensitive is True
    assert "secret" not in str(msgspec.structs.replace(config, sensitive=None))
