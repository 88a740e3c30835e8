"""Configs of a topic, with what they would be if it set nothing."""

from kafscale.admin.topics.configs import _config
from kafscale.protocol.messages.describe_configs import ConfigSynonym, DescribedConfig

TOPIC, STATIC_BROKER, DEFAULT = 1, 4, 5


def test_the_default_is_what_the_brokers_settings_say_before_what_kafka_says():
    found = _config(
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
    assert found == {
        "name": "retention.ms",
        "value": "1000",
        "default": "2000",
        "isSet": True,
        "readOnly": False,
        "sensitive": False,
        "type": "long",
        "documentation": "How long.",
    }


def test_what_is_not_set_has_the_default():
    synonyms = [ConfigSynonym("a", "1", DEFAULT)]
    found = _config(DescribedConfig(name="a", value="1", source=DEFAULT, synonyms=synonyms))
    assert (found["value"], found["default"], found["isSet"]) == ("1", "1", False)
    assert (found["type"], found["documentation"]) == ("unknown", None)


def test_what_is_sensitive_is_not_told():
    synonyms = [ConfigSynonym("a", "secret", DEFAULT)]
    found = _config(
        DescribedConfig(
            name="a", value="secret", source=DEFAULT, is_sensitive=True, synonyms=synonyms
        )
    )
    assert found["sensitive"] is True
    assert "secret" not in str({**found, "sensitive": None})
