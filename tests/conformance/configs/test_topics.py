"""Configs of topics: values, list operations, and errors in Kafka's words."""

import itertools

import pytest

from conformance.configs.player import APPEND, DELETE, SET, SUBTRACT, TOPIC
from kafscale.metadata.topics.config_defs import TOPIC_CONFIGS
from kafscale.metadata.topics.config_types import ConfigType
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    TopicConfig,
    TopicToCreate,
)
from kafscale.protocol.messages.incremental_alter_configs import ConfigToAlter, ResourceToAlter
from services.selection import long_except

pytestmark = pytest.mark.timeout(120)

_numbers = itertools.count()


@pytest.fixture
def topic(players) -> str:
    """A topic on both servers."""
    name = f"topic-{next(_numbers)}"
    for player in players:
        player.create(name)
    return name


INTEGERS = ["-131073", "-3", "-2", "-1", "0", "1", "3", "5", "9", "10", "17", "18", "22", "23"]
INTEGERS += ["1048575", "1048576", "2147483647", "2147483648", "9223372036854775807"]
INTEGERS += ["9223372036854775808", "1.5", "", " 5 ", "+5", "0x5", "5ms"]
WORDS = ["", "x", "true", "TRUE", " false ", "yes", "gzip", "Gzip", " lz4 ", "producer", "snappy"]
WORDS += ["uncompressed", "zstd", "CreateTime", "LogAppendTime", "createtime", "delete", "compact"]
WORDS += ["compact,delete", " compact , delete ", "delete,delete", "compact,,delete", "Compact"]
WORDS += [
    "0:1",
    "*",
    "0:1,1:2",
    "0:1,",
    "0:1:2",
    "none:1",
    "0",
    "0.0",
    "1.0",
    "1.1",
    "-0.1",
    "0.25",
]


@pytest.mark.parametrize("name", sorted(TOPIC_CONFIGS))
def test_every_value_is_accepted_or_refused_as_in_kafka(same, topic, name):
    kind = TOPIC_CONFIGS[name].type.type
    values = [*INTEGERS, "x"] if kind in {ConfigType.INT, ConfigType.LONG} else [*WORDS, "1"]
    if name == "segment.bytes":  # Small segments are accepted, which Kafka refuses since 4.0.
        values = ["1048576", "2147483647", "2147483648", "x", ""]
    same(lambda player: {value: player.alter(TOPIC, topic, (name, SET, value)) for value in values})


def test_every_config_of_kafka_is_known_and_no_other(same, topic):
    same(lambda player: sorted(player.describe(TOPIC, topic)))
    same(lambda player: {c.name: c.type for c in player.describe(TOPIC, topic).values()})
    same(lambda player: {c.name: c.read_only for c in player.describe(TOPIC, topic).values()})


def is_none(value: str | None) -> bool:
    return value is None


LISTS = [
    [("cleanup.policy", SUBTRACT, "delete")],
    [("cleanup.policy", SET, "")],
    [("cleanup.policy", APPEND, "compact")],
    [("cleanup.policy", APPEND, "delete")],
    [("cleanup.policy", APPEND, "")],
    [("cleanup.policy", APPEND, " compact")],
    [("cleanup.policy", APPEND, "compact,compact")],
    [("cleanup.policy", APPEND, "other")],
    [("cleanup.policy", SUBTRACT, "other")],
    [("cleanup.policy", SUBTRACT, "delete,delete")],
    [("cleanup.policy", SUBTRACT, "")],
    [("cleanup.policy", DELETE, "ignored")],
    [("leader.replication.throttled.replicas", APPEND, "0:1,1:1")],
    [("leader.replication.throttled.replicas", APPEND, "x")],
]


@pytest.mark.parametrize("first", long_except([None, "", "compact", "delete,delete"], is_none))
@pytest.mark.parametrize("operations", LISTS, ids=str)
def test_lists_are_appended_to_and_subtracted_from(same, topic, first, operations):
    def conversation(player):
        if first is not None:
            player.alter(TOPIC, topic, ("cleanup.policy", SET, first))
        result = player.alter(TOPIC, topic, *operations)
        return result, player.value(TOPIC, topic, operations[0][0])

    same(conversation)


REFUSED = [
    [("retention.ms", APPEND, "1")],
    [("retention.ms", SUBTRACT, "1")],
    [("retention.ms", SET, None)],
    [("retention.ms", SET, None), ("segment.ms", APPEND, None)],
    [("cleanup.policy", SUBTRACT, None)],
    [("retention.ms", SET, "1"), ("retention.ms", SET, "1")],
    [("retention.ms", DELETE, None), ("retention.ms", SET, "1")],
    [("nonsense", SET, "1")],
    [("nonsense", DELETE, None)],
    [("nonsense", APPEND, "1")],
    [("message.format.version", SET, "3.0")],
    [("message.downconversion.enable", SET, "true")],
    [("retention.ms", SET, "5"), ("nonsense", SET, "x")],
    [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")],
    [("remote.storage.enable", SET, "true"), ("cleanup.policy", SET, "compact")],
    [("retention.ms", 9, None)],
    [],
]


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("operations", REFUSED, ids=str)
def test_invalid_changes_change_nothing(same, topic, operations, validate_only):
    def conversation(player):
        player.alter(TOPIC, topic, ("retention.ms", SET, "77"))
        result = player.alter(TOPIC, topic, *operations, validate_only=validate_only)
        missing = player.alter(TOPIC, "missing", *operations, validate_only=validate_only)
        return result, missing, player.value(TOPIC, topic, "retention.ms")

    same(conversation)


def test_resources_are_checked(same, topic):
    operation = ("retention.ms", SET, "1")
    same(lambda player: player.alter(TOPIC, "", operation))
    for kind in (0, 1, 3, 5, 99, -1):
        same(lambda player, kind=kind: player.alter(kind, "any", operation))
    twice = [ResourceToAlter(TOPIC, topic, [ConfigToAlter(*operation)])] * 2
    same(lambda player: player.alter_all(twice))


def test_all_configs_are_replaced(same, topic):
    def conversation(player):
        return [
            player.replace(TOPIC, topic, ("retention.ms", "5"), ("segment.ms", "7")),
            player.replace(TOPIC, topic, ("segment.ms", "9"), validate_only=True),
            player.value(TOPIC, topic, "segment.ms"),
            player.replace(TOPIC, topic, ("segment.ms", "8")),
            player.value(TOPIC, topic, "retention.ms")[0],
            player.replace(TOPIC, topic, ("segment.ms", None)),
            player.replace(TOPIC, topic, ("segment.ms", "1"), ("segment.ms", "1")),
            player.replace(TOPIC, topic, ("nonsense", "1")),
            player.replace(TOPIC, topic, ("cleanup.policy", "")),
            player.value(TOPIC, topic, "cleanup.policy"),
            player.replace(TOPIC, "missing", ("segment.ms", "1")),
            player.replace(TOPIC, "", ("segment.ms", "1")),
            player.replace(0, "any", ("segment.ms", "1")),
            player.replace(8, "1", ("root", "INFO")),
        ]

    same(conversation)


@pytest.mark.parametrize(
    "configs",
    [
        [("nonsense", "1")],
        [("cleanup.policy", "")],
        [("retention.ms", "x")],
        [("retention.ms", None)],
        [("retention.ms", "1"), ("retention.ms", "2")],
        [("remote.storage.enable", "true")],
        [("message.format.version", "3.0")],
        [("file.delete.delay.ms", "1"), ("unclean.leader.election.enable", "true")],
    ],
    ids=str,
)
def test_topics_are_created_with_the_same_configs(same, configs):
    name = f"created-{next(_numbers)}"

    def conversation(player):
        requested = TopicToCreate(name, 1, -1, configs=[TopicConfig(*each) for each in configs])
        [created] = player.call(CREATE_TOPICS, 7, CreateTopicsRequest([requested])).topics
        own = {each.name: each.value for each in created.configs if each.source == 1}
        return created.error_code, created.error_message, own

    same(conversation)
