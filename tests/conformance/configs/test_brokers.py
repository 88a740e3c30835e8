"""Dynamic configs of brokers and the levels of their loggers."""

import pytest

from conformance.configs.player import APPEND, BROKER, BROKER_LOGGER, DELETE, SET, SUBTRACT, TOPIC

pytestmark = pytest.mark.timeout(120)

BOTH = ["1", ""]
"""This broker, and all brokers."""


def values(player, kind, name, config):
    """The values of a config in order of precedence, down to those of the settings."""
    player.value(kind, name, config)
    described = player.describe(kind, name, config)[config]
    dynamic = [(each.name, each.value, each.source) for each in described.synonyms]
    return described.value, described.source, [each for each in dynamic if each[2] < 4]


def test_configs_of_this_broker_come_before_those_of_all(same):
    def conversation(player):
        results = [player.alter(BROKER, "", ("log.retention.bytes", SET, "1000"))]
        results.append(values(player, BROKER, "1", "log.retention.bytes"))
        results.append(player.alter(BROKER, "1", ("log.retention.bytes", SET, "2000")))
        results.append(values(player, BROKER, "1", "log.retention.bytes"))
        results.append(values(player, BROKER, "", "log.retention.bytes"))
        player.create("inherits")
        results.append(values(player, TOPIC, "inherits", "retention.bytes"))
        results.append(player.alter(BROKER, "1", ("log.retention.bytes", DELETE, None)))
        results.append(values(player, TOPIC, "inherits", "retention.bytes"))
        results.append(player.alter(BROKER, "", ("log.retention.bytes", DELETE, "x")))
        results.append(player.value(BROKER, "1", "log.retention.bytes"))
        return results

    same(conversation)


CHANGES = [
    ("broker.id", SET, "4"),
    ("listeners.other", DELETE, None),
    ("advertised.listeners", SET, "PLAINTEXT://x:1"),
    ("delete.topic.enable", SET, "false"),
    ("socket.request.max.bytes", SET, "5"),
    ("log.retention.hours", SET, "5"),
    ("default.replication.factor", SET, "3"),
    ("message.max.bytes", SET, "x"),
    ("message.max.bytes", SET, "-1"),
    ("message.max.bytes", SET, "2000000"),
    ("log.segment.bytes", SET, "2000000"),
    ("log.cleanup.policy", SET, "compact"),
    ("log.cleanup.policy", SET, "compressed"),
    ("log.cleanup.policy", APPEND, "compact"),
    ("log.cleanup.policy", SUBTRACT, "delete"),
    ("log.retention.ms", APPEND, "1"),
    ("log.retention.ms", SUBTRACT, "1"),
    ("log.retention.ms", SET, None),
    ("log.retention.ms", 8, "1"),
    ("log.roll.ms", SET, "5"),
    ("log.index.interval.bytes", SET, "5"),
    ("log.local.retention.ms", SET, "1"),
    ("log.message.timestamp.type", SET, "LogAppendTime"),
    ("log.flush.interval.ms", SET, "5"),
    ("unclean.leader.election.enable", SET, "true"),
    ("compression.type", SET, "x"),
    ("max.connections", SET, "5000"),
    ("max.connections", SET, "many"),
    ("max.connections.per.ip", SET, "100"),
    ("max.connections.per.ip.overrides", SET, "1.2.3.4:5"),
    ("max.connection.creation.rate", SET, "100"),
    ("background.threads", SET, "0"),
    ("background.threads", SET, "12"),
    ("num.replica.fetchers", SET, "2"),
    ("leader.replication.throttled.rate", SET, "5"),
    ("follower.replication.throttled.rate", SET, "5"),
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_changes_are_accepted_or_refused_as_in_kafka(same, change):
    same(lambda player: [player.alter(BROKER, each, change, validate_only=True) for each in BOTH])


def test_resources_are_checked(same):
    change = ("log.retention.ms", SET, "1")
    same(lambda player: [player.alter(BROKER, name, change) for name in ("7", "x", "-1")])
    same(lambda player: player.replace(BROKER, "7", ("log.retention.ms", "1")))
    same(lambda player: [player.described(BROKER, name) for name in ("7", "x")])
    same(lambda player: [player.described(BROKER_LOGGER, name) for name in ("7", "", "x")])


def test_configs_of_a_broker_are_replaced(same):
    def conversation(player):
        results = []
        for configs in (
            [("log.retention.bytes", "5"), ("log.roll.ms", "7")],
            [("log.retention.bytes", "6")],
            [("broker.id", "6")],
        ):
            results.append(player.replace(BROKER, "1", *configs))
            results += [values(player, BROKER, "1", name)[1] for name, _ in configs]
        return results, player.replace(BROKER, "1")

    same(conversation)


LEVELS = [
    ("root", SET, "DEBUG"),
    ("root", SET, "TRACE"),
    ("root", SET, "FATAL"),
    ("root", SET, "debug"),
    ("root", SET, "OFF"),
    ("root", SET, ""),
    ("root", SET, None),
    ("root", DELETE, None),
    ("root", APPEND, "INFO"),
    ("root", SUBTRACT, "INFO"),
    ("nonsense", SET, "DEBUG"),
    ("nonsense", DELETE, None),
    ("", SET, "INFO"),
]


@pytest.mark.parametrize("change", LEVELS, ids=str)
def test_levels_of_loggers(same, change):
    def conversation(player):
        player.alter(BROKER_LOGGER, "1", ("root", SET, "WARN"))
        tried = player.alter(BROKER_LOGGER, "1", change, validate_only=True)
        before = player.value(BROKER_LOGGER, "1", "root")
        result = player.alter(BROKER_LOGGER, "1", change)
        after = player.value(BROKER_LOGGER, "1", "root")
        return tried, before, result, after

    same(conversation)


def test_loggers_belong_to_a_broker(same):
    change = ("root", SET, "INFO")
    same(lambda player: [player.alter(BROKER_LOGGER, name, change) for name in ("7", "", "x")])
